"""Options and arguments that several commands share."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from brax.training.distributed import hosts

env_argument = click.argument("env")


preset_option = click.option(
    "--preset", default="default", show_default=True, help="Named settings, such as cpu."
)


trainer_option = click.option("--trainer", default="ppo", show_default=True, help="The agent.")


steps_option = click.option(
    "--steps", type=click.IntRange(min=0), help="Environment steps to train for."
)


runs_option = click.option(
    "--runs",
    "runs_dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where runs are kept.",
)


set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the trainer; env.KEY=VALUE one of the environment. Repeatable.",
)


OWN_RANDOMIZATION = "own"
"""Stands for the environment's own function that randomizes its physics."""


def distributed_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a process that trains with others; it joins them before the command runs."""

    @click.option(
        "--coordinator", metavar="HOST:PORT", help="Where the first of several processes listens."
    )
    @click.option("--num-processes", type=click.IntRange(min=1), help="Number of processes.")
    @click.option("--process-id", type=click.IntRange(min=0), help="Which this one is, from 0.")
    @functools.wraps(command)
    def joined(
        *args: Any,
        coordinator: str | None,
        num_processes: int | None,
        process_id: int | None,
        **kwargs: Any,
    ) -> None:
        hosts.join(coordinator, num_processes, process_id)
        command(*args, **kwargs)

    return joined


randomize_option = click.option(
    "--randomize",
    metavar="[MODULE:FUNCTION]",
    is_flag=False,
    flag_value=OWN_RANDOMIZATION,
    help="Randomize the physics: by the environment's own function, or by the one named.",
)


render_option = click.option(
    "--render", is_flag=True, help="Write rollout.html at the end, a page that shows the result."
)


run_folder = click.Path(exists=True, file_okay=False, path_type=Path)
"""The type of an argument that is the folder of a run."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
