"""Was written for a plugin API that does not exist yet."""

from brax.plugins import Spec, hookimpl

BRAX_PLUGIN_API = 2


@hookimpl
def brax_environments() -> list[Spec]:
    """An environment of the future."""
    return [Spec("future", "brax_future_api:Future")]
