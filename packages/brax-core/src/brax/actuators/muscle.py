"""MuJoCo's muscle: active force by length, velocity and activation, and passive force by length."""

import jax
import jax.numpy as jnp

from brax.actuators.interface import ActuatorParams, ActuatorType


class Muscle(ActuatorType):
    """A muscle of force `-F0 (FL(L) FV(V) activation + FP(L))`; the activation follows the control.

    `gain0` and `gain1` are the lengths, in units of the resting length L0, at the ends of the
    actuator's `length_range`. `gain2` is the peak force F0 [N]. `gain4` and `gain5` are the lengths
    between which there is active force, `gain6` is the velocity of shortening without force in
    L0/s, and `gain8` is the active force at saturating lengthening, in units of F0. `bias0` to
    `bias8` are the same of the passive force; of them `bias7` is that at the length `bias5`. `dyn0`
    and `dyn1` are the time constants [s] of activation and deactivation, `dyn2` is the width of the
    smooth transition between the two.

    Source: MuJoCo's documentation, chapter Modeling, section Muscle actuators. Departures: the
    passive force begins with a square rather than a cube, as MuJoCo computes it; the peak force is
    given, rather than found from a scale and the inertia at rest.
    """

    name = "muscle"
    stateful = True
    needs_length_range = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return active and passive force; both pull."""
        # Lengths in units of L0: L = low + (length - shortest length) / L0, and V in units of the
        # fastest shortening.
        span = params.length_range
        low, high, peak, _, shortest, longest, fastest, _, most = params.gainprm[:9]
        rest = (span[1] - span[0]) / (high - low)
        at, speed = low + (length - span[0]) / rest, velocity / (rest * fastest)
        active = _by_length(at, shortest, longest) * _by_velocity(speed, most)
        low, high, strength, _, _, longest, _, passive, _ = params.biasprm[:9]
        rest = (span[1] - span[0]) / (high - low)
        stretched = _passive(low + (length - span[0]) / rest, longest)
        return -(peak * active * signal + strength * passive * stretched)

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return the activation's rate.

        It rises faster than it falls, and rises more slowly the higher it is.

        Source: Millard et al. (2013), Flexing Computational Muscle, J. Biomech. Eng. 135(2).
        """
        rise, fall, width = params.dynprm[:3]
        # The effective time constant is rise (0.5 + 1.5 a) while activating and fall / (0.5 + 1.5
        # a) while deactivating.
        share = 0.5 + 1.5 * jnp.clip(activation, 0.0, 1.0)
        missing = jnp.clip(ctrl, 0.0, 1.0) - activation
        # Without a width the two constants are switched, not blended; one stands in for the
        # divisor, so that the derivative of the unused branch is finite.
        hard = width <= 0.0
        blend = _smooth_step(missing / jnp.where(hard, 1.0, width) + 0.5)
        blend = jnp.where(hard, missing > 0.0, blend)
        return missing / (fall / share + (rise * share - fall / share) * blend)


def _by_length(at: jax.Array, shortest: jax.Array, longest: jax.Array) -> jax.Array:
    """Return FL: four parabolas, one at the resting length and zero at both ends."""
    left, right = 0.5 * (shortest + 1.0), 0.5 * (1.0 + longest)
    # Distance from the nearer end, in units of half the way to the resting length.
    side = jnp.where(at < 1.0, (at - shortest) / (left - shortest), (longest - at) / (right - 1.0))
    side = jnp.clip(side, 0.0, 2.0)
    return jnp.where(side < 1.0, 0.5 * side * side, 1.0 - 0.5 * (2.0 - side) ** 2)


def _by_velocity(speed: jax.Array, most: jax.Array) -> jax.Array:
    """Return FV: zero at the fastest shortening, one at rest, then up to `most`."""
    above = most - 1.0
    short = above - jnp.clip(speed, 0.0, above)
    lengthening = most - short * short / jnp.where(above > 0.0, above, 1.0)
    return jnp.where(speed <= 0.0, jnp.clip(speed + 1.0, 0.0, 1.0) ** 2, lengthening)


def _passive(at: jax.Array, longest: jax.Array) -> jax.Array:
    """Return FP: a parabola from the resting length, then a straight line."""
    past = jnp.maximum((at - 1.0) / (0.5 * (longest - 1.0)), 0.0)
    return jnp.where(past <= 1.0, 0.5 * past * past, past - 0.5)


def _smooth_step(x: jax.Array) -> jax.Array:
    """Return a function from zero to one with two continuous derivatives."""
    x = jnp.clip(x, 0.0, 1.0)
    # The quintic 6 x⁵ - 15 x⁴ + 10 x³, MuJoCo's sigmoid.
    return x * x * x * (x * (6.0 * x - 15.0) + 10.0)


MUSCLE = Muscle()
