"""Was written for a plugin API that does not exist yet."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 2


@hookimpl
def brax_environments() -> list[Spec]:
    """Return an environment for a future plugin interface."""
    return [Spec("future", "brax_future_api:Future")]
