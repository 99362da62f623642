"""What brax-agents brings to the plugin registry."""

from brax.plugins import Spec, hookimpl
from brax.training.loggers import wandb
from brax.training.loggers.tensorboard import writer_module

BRAX_PLUGIN_API = 1


@hookimpl
def brax_trainers() -> list[Spec]:
    """The agents."""
    return [
        Spec("ppo", "brax.training.agents.ppo:PPO", "proximal policy optimization"),
        Spec("sac", "brax.training.agents.sac:SAC", "soft actor-critic"),
        Spec("es", "brax.training.agents.es:ES", "evolution strategies"),
        Spec("ars", "brax.training.agents.ars:ARS", "augmented random search"),
        Spec("apg", "brax.training.agents.apg:APG", "analytic policy gradients"),
        Spec("bc", "brax.training.agents.bc:BC", "behaviour cloning"),
        Spec("shac", "brax.training.agents.shac:SHAC", "short-horizon actor-critic"),
    ]


@hookimpl
def brax_metric_loggers() -> list[Spec]:
    """The metric writers; TensorBoard's and wandb's where what they need is installed."""
    loggers = [
        Spec("csv", "brax.training.loggers.csv:CsvTable", "metrics.csv"),
        Spec("jsonl", "brax.training.loggers.jsonl:JsonLines", "metrics.jsonl"),
    ]
    if writer_module():
        loggers.append(Spec("tensorboard", "brax.training.loggers.tensorboard:TensorBoard"))
    if wandb.wanted():
        loggers.append(Spec("wandb", "brax.training.loggers.wandb:WeightsAndBiases"))
    return loggers


@hookimpl
def brax_commands() -> list[Spec]:
    """The commands that train, and those that judge and draw what came of it."""
    return [
        Spec("plot", "brax.training.cli.plot:plot", "draw learning curves over seeds"),
        Spec("train", "brax.training.cli.train:train", "train an agent"),
        Spec("resume", "brax.training.cli.resume:resume", "go on with a run"),
        Spec("sweep", "brax.training.cli.sweep:sweep", "train over seeds and settings"),
        Spec("eval", "brax.training.cli.evaluate:evaluate", "measure the policy of a run"),
        Spec("compare", "brax.training.cli.compare:compare", "compare runs over their seeds"),
    ]
