"""Wrong arguments of a pipeline are refused in one sentence, before anything is traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import rail

from brax.errors import ConfigError, ModelError, ShapeError
from brax.generalized.pipeline import GENERALIZED
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING


@pytest.fixture(params=[SPRING, POSITIONAL, GENERALIZED], ids=lambda p: p.name)
def pipeline(request):
    return request.param


@pytest.fixture(scope="module")
def arm():
    """Return a mass on a slide with a motor."""
    return rail(actuators=[{}])


ONE = np.zeros(1, np.float32)

STEPS = {
    "exchanged": (
        lambda sys, s: (s, sys, ONE),
        ModelError,
        "expected a System, got a State: the system is the first argument and the state the second",
    ),
    "a path": (lambda sys, s: ("a.xml", s, ONE), ModelError, r"got 'a\.xml': load a model file"),
    "no state": (lambda sys, s: (sys, None, ONE), ShapeError, "expected a State .*, got None"),
    "coordinates": (lambda sys, s: (sys, (ONE, ONE), ONE), ShapeError, "a State .*, got a tuple"),
    "half a frame": (
        lambda sys, s: (sys, s, ONE, 2.5),
        ConfigError,
        "n_frames must be an integer >= 1, got 2.5",
    ),
    "no frame": (lambda sys, s: (sys, s, ONE, 0), ConfigError, "an integer >= 1, got 0"),
    "frames in words": (lambda sys, s: (sys, s, ONE, "2"), ConfigError, ">= 1, got '2'"),
    "a word": (lambda sys, s: (sys, s, "left"), ShapeError, r"'act' is 'left'; .* shape \(1,\)"),
    "names": (lambda sys, s: (sys, s, {"j": 1.0}), ShapeError, r"'act' is \{'j': 1.0\}"),
    "a number": (lambda sys, s: (sys, s, 0.5), ShapeError, r"'act' has shape \(\)"),
}


@pytest.fixture(scope="module")
def start(arm):
    """Return a state of the mass, as shapes."""
    return jax.eval_shape(lambda: SPRING.init(arm, jnp.asarray(ONE), jnp.asarray(ONE)))


@pytest.mark.parametrize("mistake", STEPS)
def test_a_step_says_what_was_given(pipeline, arm, start, mistake):
    arguments, error, message = STEPS[mistake]
    with pytest.raises(error, match=rf"{pipeline.name}\.step: .*{message}"):
        pipeline.step(*arguments(arm, start))


def test_a_traced_number_of_frames(arm, start):
    with pytest.raises(ConfigError, match="n_frames is traced, but must be a fixed integer"):
        jax.eval_shape(lambda s, n: SPRING.step(arm, s, jnp.asarray(ONE), n), start, 2)


def test_the_start_is_of_a_model(pipeline, arm):
    with pytest.raises(ModelError, match=r"init: expected a System, got a ndarray"):
        pipeline.init(ONE, ONE, arm)
    with pytest.raises(ShapeError, match=r"init: argument 'q' is None; .* shape \(1,\)"):
        pipeline.init(arm, None, None)


def test_no_control_is_a_control_of_zero(arm):
    # The pipeline's arithmetic is the same, so the bits are.
    state = SPRING.init(arm, jnp.asarray(ONE + 0.3), jnp.asarray(ONE))
    without, zero = (SPRING.step(arm, state, act) for act in (None, jnp.zeros(1)))
    jax.tree.map(np.testing.assert_array_equal, without, zero)
