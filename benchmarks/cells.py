"""Cells of the benchmark: each is one comparison, or one point of a curve, with a name."""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import models
import robots

OURS, WRAPPED, PEER, MUJOCO = "brax", "brax, wrapped", "Google's brax", "MuJoCo C"
NEWEST = "brax, newest JAX"
POLICY = str(Path(__file__).parent / "policies" / "ant.npz")
ALONE = {"JAX_NUM_CPU_DEVICES": "1"}
ACTIONS = {"random": None, "trained": POLICY}
NETWORKS = {
    "small": {"policy_hidden_layer_sizes": [32, 32], "value_hidden_layer_sizes": [64, 64]},
    "default": {},
}
PRESETS = models.ROOT / "packages/brax-agents/src/brax/training/agents/ppo/presets.toml"
RECIPE = {
    "num_timesteps": 4_259_840,
    "num_evals": 2,
    "episode_length": 1000,
    "normalize_observations": True,
    "num_envs": 4096,
    "batch_size": 2048,
    "num_minibatches": 32,
    "num_updates_per_batch": 4,
    "unroll_length": 5,
    "discounting": 0.97,
    "learning_rate": 3e-4,
    "entropy_cost": 1e-2,
    "reward_scaling": 10.0,
    "seed": 1,
}
"""By which Google's brax trains the ant: its recipe, up to where its return is `Size.goal`."""

PHYSICS_STEPS = 20
"""Physics steps of a call in `models`."""

TRAINED = (
    ("inverted_pendulum", "generalized", ("small", "default")),
    ("ant", "spring", ("small", "default")),
    ("humanoid", "generalized", ("small",)),
)
"""Environments that PPO trains in, with their pipelines and networks."""
EPOCHS = 4
"""Epochs of a training. The speed leaves out the first, which includes Google's compilation."""

FEATURES = {
    "humanoid, all collisions": models.crowded_humanoid,
    "ant on a height field": models.rough_ant,
    "gripper and boxes": models.gripper,
}


@dataclass(frozen=True)
class Size:
    """The number of rounds, steps and turns of a measurement."""

    batch: int
    length: int
    rounds: int
    compiles: int
    parts: tuple[str, ...]
    actions: tuple[str, ...] = ("random",)
    batches: tuple[int, ...] = ()
    links: tuple[int, ...] = ()
    contacts: tuple[int, ...] = ()
    large: int = 65536
    """Batch whose memory is asked for."""
    rollout: tuple[int, int, int] = (64, 1000, 25)
    """Batch, steps and inner steps of the gradient's rollout."""
    trainings: int = 1
    """Number of turns in which each side of `training` learns."""
    robots: tuple[str, ...] = tuple(robots.robots())
    """Names of the models of `models`."""
    batches_of_robots: tuple[int, ...] = (64, 256, 1024, 4096)
    """Batches of `models`, of which each side has its fastest."""
    seconds: float = 1.0
    """Length of a measurement of `models`."""
    goal: float = 776.0
    """Return of the ant to which the time is taken."""


@dataclass(frozen=True)
class Setup:
    """One side."""

    settings: dict[str, Any]
    script: str = "worker.py"
    python: str = OURS
    """Whose interpreter runs it: `OURS`, `PEER` or `NEWEST`."""
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """Sides by name that take turns in rollouts of `length` steps, or in answers to a request."""

    name: str
    sides: dict[str, Setup]
    length: int = 0
    request: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def part(self) -> str:
        return self.name.split("/")[0]

    @property
    def model(self) -> dict[str, Any]:
        return self.sides[OURS].settings.get("model", {})

    @property
    def batch(self) -> int:
        return self.sides[OURS].settings.get("batch", 0)


SLOWEST = {"versions": 0.9}
"""Least speed of the second side, as a share of ours; a cell that is slower has failed."""

COMPARED = ("peer", "single", "mujoco", "features", "models", "training", "reach")
"""Parts with another program as a side, on CPUs only; what floats must also obey Newton."""

BARS = (*COMPARED, "versions", "memory", "gradient")
CURVES = ("wrapped", "precision", "batch", "links", "contacts")

SIZES = {
    "quick": Size(
        64,
        10,
        1,
        1,
        BARS + CURVES,
        ("random", "trained"),
        (1, 64),
        (2, 10),
        (0, 4),
        256,
        (4, 8, 4),
        robots=("cheetah", "chain of 20"),
        batches_of_robots=(64,),
        seconds=0.0,
        goal=-1e9,
    ),
    "normal": Size(2048, 50, 3, 1, BARS, trainings=3),
    "full": Size(
        *(2048, 50, 5, 3, BARS + CURVES, ("random", "trained")),
        batches=tuple(4**k for k in range(9)),
        links=(2, 5, 10, 20, 50, 100),
        contacts=(0, 1, 4, 16, 64),
        trainings=3,
    ),
}


def cells(size: Size, folder: str | None, threads: int) -> Iterator[Cell]:
    """All cells of a size.

    Args:
        size: how much.
        folder: the models of Google's brax; None if there are none.
        threads: of MuJoCo.
    """
    for part in size.parts:
        for pipeline in models.PIPELINES:
            yield from PARTS[part](size, pipeline, folder, threads)


def _ours(
    model: dict[str, Any], pipeline: str, batch: int, policy: str | None = None, **more: Any
) -> dict[str, Any]:
    return {"model": model, "backend": pipeline, "batch": batch, "policy": policy, **more}


def _peer(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    for name in models.TASKS:
        for action in size.actions if name == "ant" else ("random",):
            model = models.task(name, pipeline, folder)
            settings = _ours(model, pipeline, size.batch, ACTIONS[action])
            sides = {OURS: Setup(settings), PEER: Setup(settings, python=PEER)}
            yield Cell(f"peer/{name}/{pipeline}/{action}", sides, size.length)


def _versions(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """Return cells that compare this project with itself on the newest Python, JAX and packages."""
    strict = {"PYTHONWARNINGS": "error:Brax runs slower than it should:RuntimeWarning"}
    for name in models.TASKS:
        settings = _ours(models.task(name, pipeline, folder), pipeline, size.batch)
        sides = {
            OURS: Setup(settings, environment=strict),
            NEWEST: Setup(settings, python=NEWEST, environment=strict),
        }
        yield Cell(f"versions/{name}/{pipeline}", sides, size.length)


def _single(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """Return cells of the ant with one JAX device, JAX's default."""
    settings = _ours(models.task("ant", pipeline, folder), pipeline, size.batch)
    sides = {OURS: Setup(settings, environment=ALONE)}
    sides[PEER] = Setup(settings, python=PEER, environment=ALONE)
    yield Cell(f"single/ant/{pipeline}", sides, size.length)


def _mujoco(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    for action in size.actions:
        policy = ACTIONS[action]
        ours = _ours(models.ant(pipeline), pipeline, size.batch, policy)
        theirs = {"model": models.ant("generalized"), "batch": size.batch, "policy": policy}
        sides = {
            OURS: Setup(ours),
            MUJOCO: Setup(theirs | {"threads": threads}, "mujoco_worker.py"),
        }
        yield Cell(f"mujoco/ant/{pipeline}/{action}", sides, size.length)


def _features(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """Models that are more than feet on a floor."""
    for name, make in FEATURES.items() if pipeline == "generalized" else ():
        settings = {"model": make(), "batch": size.batch, "policy": None}
        sides = {
            OURS: Setup(settings | {"backend": pipeline}),
            MUJOCO: Setup(settings | {"threads": threads}, "mujoco_worker.py"),
        }
        yield Cell(f"features/{name}", sides, size.length)


def _models(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """Return cells of models as people have them, beside MuJoCo C."""
    known = robots.robots()
    for name in size.robots if pipeline == "generalized" else ():
        settings = {
            "model": known[name],
            "batches": size.batches_of_robots,
            "seconds": size.seconds,
            "threads": threads,
        }
        sides = {
            OURS: Setup(settings, "physics_worker.py", environment=ALONE),
            MUJOCO: Setup(settings, "rollout_worker.py"),
        }
        yield Cell(f"models/{name}", sides, PHYSICS_STEPS)


def _wrapped(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    settings = _ours(models.ant(pipeline), pipeline, size.batch)
    sides = {OURS: Setup(settings), WRAPPED: Setup(settings | {"wrapped": True})}
    yield Cell(f"wrapped/ant/{pipeline}", sides, size.length)


def _precision(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    for bits in (32, 64):
        setup = Setup(
            _ours(models.ant(pipeline), pipeline, size.batch),
            environment={"JAX_ENABLE_X64": str(int(bits == 64))},
        )
        yield Cell(f"precision/{pipeline}/float{bits}", {OURS: setup}, size.length)


def _curve(
    name: str,
    pipeline: str,
    points: Iterable[int],
    make: Callable[[int], dict[str, Any]],
    batch: Callable[[int], int],
    length: Callable[[int], int],
) -> Iterator[Cell]:
    for n in points:
        setup = Setup(_ours(make(n), pipeline, batch(n)))
        yield Cell(f"{name}/{pipeline}/{n}", {OURS: setup}, length(n))


def _batch(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """Return the cells of the batch sizes; small batches run longer, for about a second."""
    work = size.batch * size.length

    def length(n: int) -> int:
        return max(5, min(work // n, 20 * size.length))

    ant = models.ant(pipeline)
    return _curve("batch", pipeline, size.batches, lambda n: ant, lambda n: n, length)


def _links(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    def batch(n: int) -> int:
        return max(1, size.batch // 8)

    return _curve("links", pipeline, size.links, models.chain, batch, lambda n: size.length)


def _contacts(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    def batch(n: int) -> int:
        return max(1, size.batch // 8)

    return _curve("contacts", pipeline, size.contacts, models.tray, batch, lambda n: size.length)


def _memory(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    setup = Setup(_ours(models.ant(pipeline), pipeline, size.large), environment=ALONE)
    yield Cell(f"memory/{pipeline}", {OURS: setup}, request="memory")


def _gradient(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    batch, length, inner = size.rollout
    setup = Setup(_ours(models.ant(pipeline), pipeline, batch), environment=ALONE)
    arguments = {"length": length, "inner": inner}
    yield Cell(f"gradient/{pipeline}", {OURS: setup}, request="gradient", arguments=arguments)


def _training(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """PPO in the environments of both, 4 passes over all that is seen, in 32 batches.

    Each on as many devices as it is faster with: Google's on one per core, ours on the one that
    JAX makes.
    """
    for env, backend, names in TRAINED:
        for name in names if backend == pipeline else ():
            networks = NETWORKS[name]
            settings = {"env": env, "backend": backend, "batch": size.batch, "networks": networks}
            sides = {
                OURS: Setup(settings, "training_worker.py", environment=ALONE),
                PEER: Setup(settings, "training_worker.py", python=PEER),
            }
            recipe = {
                "num_timesteps": EPOCHS * 4 * 10 * size.batch,
                "unroll_length": 5,
                "batch_size": size.batch // 4,
                "num_minibatches": 8,
                "num_updates_per_batch": 4,
                "episode_length": 1000,
                "num_eval_envs": 16,
                "normalize_observations": True,
                "learning_rate": 1e-3,
                "entropy_cost": 1e-2,
                "discounting": 0.97,
                "reward_scaling": 1.0,
            }
            arguments = {"epochs": EPOCHS, "settings": recipe}
            yield Cell(f"training/{env}/{backend}/{name}", sides, 0, "train", arguments)


def _reach(size: Size, pipeline: str, folder: str | None, threads: int) -> Iterator[Cell]:
    """Return the cell of the ant by each side's recipe: ours for a few cores, and Google's."""
    if pipeline == "spring":
        ours = tomllib.loads(PRESETS.read_text())["ant"]["cpu"]
        about = {"env": "ant", "backend": pipeline}
        sides = {
            OURS: Setup(about | {"recipe": ours}, "training_worker.py"),
            PEER: Setup(about | {"recipe": RECIPE}, "training_worker.py", python=PEER),
        }
        yield Cell(f"reach/ant/{pipeline}", sides, 0, "reach", {"goal": size.goal})


PARTS = {
    "peer": _peer,
    "single": _single,
    "versions": _versions,
    "mujoco": _mujoco,
    "features": _features,
    "models": _models,
    "training": _training,
    "reach": _reach,
    "wrapped": _wrapped,
    "precision": _precision,
    "batch": _batch,
    "links": _links,
    "contacts": _contacts,
    "memory": _memory,
    "gradient": _gradient,
}
