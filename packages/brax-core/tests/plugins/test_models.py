"""Plugins and models: who is asked for a pair of shapes, and what a broken one does to others."""

import contextlib
import types
from typing import Any

import pytest

from brax import plugins
from brax.builder import ModelBuilder
from brax.colliders import Collider
from brax.errors import ModelError, PluginError
from brax.plugins import PluginWarning, Spec, hookimpl

OURS = plugins.get("collider", "plane-sphere")


@contextlib.contextmanager
def registered(override=False, **hooks):
    """Yield a plugin of this test."""
    made: Any = types.ModuleType("acme_plugin")
    made.BRAX_PLUGIN_API = 1
    for name, specs in hooks.items():
        setattr(made, f"brax_{name}", hookimpl(lambda specs=specs: specs))
    plugins.register(made, "acme", override)
    try:
        yield
    finally:
        plugins.unregister("acme")


def drop(shape="sphere", **changes):
    """Return a shape above a plane."""
    model = ModelBuilder()
    model.add_geom("world", "plane", size=(1, 1, 1))
    model.add_body("a", pos=(0, 0, 1), mass=1.0, inertia=(1, 1, 1))
    model.add_joint("a", "free")
    model.add_geom("a", shape, size=(0.1,), **changes)
    return model.build()


class Bottomless(Collider):
    """A plane through which balls fall."""

    types, n_contacts = ("sphere", "plane"), 1

    def collide(self, a, b):
        return [t._replace(dist=t.dist + 10.0) for t in OURS.collide(b, a)]


BOTTOMLESS = Bottomless()


@pytest.mark.parametrize("keys", [("plane", "torus"), ()])
def test_a_collider_that_cannot_be_imported_harms_no_model_without_it(keys):
    specs = [Spec("gone", "nowhere:COLLIDER", keys=keys)]
    warned = pytest.warns(PluginWarning, match=r"collider 'gone' of acme .* cannot be loaded")
    with registered(colliders=specs):
        with contextlib.nullcontext() if keys else warned:
            assert drop().collisions[0].collider is OURS
        model = ModelBuilder()
        model.add_body("a", mass=1.0, inertia=(1, 1, 1))
        model.add_joint("a")
        model.build()


def test_a_collider_that_cannot_be_imported_is_one_problem_of_a_model_with_it():
    specs = [Spec("gone", "nowhere:COLLIDER", keys=("plane", "sphere"))]
    with registered(override=True, colliders=specs), pytest.raises(ModelError) as caught:
        drop()
    (problem,) = caught.value.problems
    assert problem.startswith("collider 'gone' of acme (nowhere:COLLIDER) cannot be loaded: Module")


def test_a_pair_that_is_ours_is_taken_whatever_the_collider_s_name():
    message = (
        "the collider 'mine' of acme is for plane and sphere, which is already registered by "
        r"brax-core .* as 'plane-sphere'"
    )
    with (
        pytest.raises(PluginError, match=message),
        registered(colliders=[Spec("mine", BOTTOMLESS)]),
    ):
        pass
    assert drop().collisions[0].collider is OURS


def test_a_pair_is_replaced_on_purpose_and_given_back():
    with registered(override=True, colliders=[Spec("mine", BOTTOMLESS)]):
        (group,) = drop().collisions
        assert group.collider is BOTTOMLESS
        assert (group.geom1, group.geom2) == ((1,), (0,))
    assert drop().collisions[0].collider is OURS
