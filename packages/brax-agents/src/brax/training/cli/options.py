"""Options and arguments that several commands share."""

import functools
from collections.abc import Callable
from pathlib import Path

import click

from brax.training.distributed import hosts

env_argument = click.argument("env")


preset_option = click.option(
    "--preset", default="default", show_default=True, help="Named settings, such as cpu."
)


trainer_option = click.option(
    "--trainer",
    show_default="the best that is known for ENV and the preset, or ppo",
    help="Agent to train.",
)


steps_option = click.option(
    "--steps", type=click.IntRange(min=0), help="Environment steps to train for."
)


runs_option = click.option(
    "--runs",
    "runs_dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of the runs.",
)


set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a setting of the trainer, or by env.KEY=VALUE of the environment. Repeatable.",
)


OWN_RANDOMIZATION = "own"
"""Value of `--randomize` for the environment's own `randomization_fn`."""


def distributed_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of distributed training to a command; join the processes before it runs."""

    @click.option(
        "--coordinator", metavar="HOST:PORT", help="Address at which the first process listens."
    )
    @click.option("--num-processes", type=click.IntRange(min=1), help="Number of processes.")
    @click.option(
        "--process-id", type=click.IntRange(min=0), help="Number of this process, from 0."
    )
    @functools.wraps(command)
    def joined(
        *args: object,
        coordinator: str | None,
        num_processes: int | None,
        process_id: int | None,
        **kwargs: object,
    ) -> None:
        hosts.join(coordinator, num_processes, process_id)
        command(*args, **kwargs)

    return joined


randomize_option = click.option(
    "--randomize",
    metavar="[MODULE:FUNCTION]",
    is_flag=False,
    flag_value=OWN_RANDOMIZATION,
    help="Randomize the physics, by the environment's own function or by the named one.",
)


render_option = click.option(
    "--render", is_flag=True, help="Write rollout.html, a page that shows the result, at the end."
)


run_folder = click.Path(exists=True, file_okay=False, path_type=Path)
"""Type of an argument that is the folder of a run."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
