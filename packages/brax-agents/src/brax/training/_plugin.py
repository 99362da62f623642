"""The plugins that brax-agents registers: trainers, metric loggers and commands."""

from brax.plugins import Spec, hookimpl
from brax.training.loggers import wandb
from brax.training.loggers.tensorboard import writer_module

BRAX_PLUGIN_API = 1


@hookimpl
def brax_trainers() -> list[Spec]:
    """Return the agents."""
    return [
        Spec("ppo", "brax.training.agents.ppo:PPO", "proximal policy optimization"),
        Spec(
            "reppo",
            "brax.training.agents.reppo:REPPO",
            "relative entropy pathwise policy optimization",
        ),
        Spec("sac", "brax.training.agents.sac:SAC", "soft actor-critic"),
        Spec("td3", "brax.training.agents.td3:TD3", "twin delayed deterministic policy gradients"),
        Spec("es", "brax.training.agents.es:ES", "evolution strategies"),
        Spec("ars", "brax.training.agents.ars:ARS", "augmented random search"),
        Spec("apg", "brax.training.agents.apg:APG", "analytic policy gradients"),
        Spec("bc", "brax.training.agents.bc:BC", "behaviour cloning"),
        Spec("shac", "brax.training.agents.shac:SHAC", "short-horizon actor-critic"),
    ]


@hookimpl
def brax_metric_loggers() -> list[Spec]:
    """Return the metric loggers; TensorBoard's and wandb's only if their packages are installed."""
    loggers = [
        Spec("csv", "brax.training.loggers.csv:CsvTable", "metrics.csv"),
        Spec("jsonl", "brax.training.loggers.jsonl:JsonLines", "metrics.jsonl"),
    ]
    # Their packages are optional: a logger that cannot work would warn in every run.
    if writer_module():
        loggers.append(Spec("tensorboard", "brax.training.loggers.tensorboard:TensorBoard"))
    if wandb.wanted():
        loggers.append(Spec("wandb", "brax.training.loggers.wandb:WeightsAndBiases"))
    return loggers


@hookimpl
def brax_commands() -> list[Spec]:
    """Return the commands that train, evaluate, compare and plot."""
    return [
        Spec("plot", "brax.training.cli.plot:plot", "draw learning curves over seeds"),
        Spec("train", "brax.training.cli.train:train", "train an agent"),
        Spec("resume", "brax.training.cli.resume:resume", "continue a run"),
        Spec("sweep", "brax.training.cli.sweep:sweep", "train over seeds and settings"),
        Spec("eval", "brax.training.cli.evaluate:evaluate", "measure the policy of a run"),
        Spec("compare", "brax.training.cli.compare:compare", "compare runs over their seeds"),
    ]
