"""Scenes of the gallery: models whose motions follow from arithmetic, and their simulation."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import State, System
from brax.io import mjcf

TIMESTEP, SUBSTEPS = 0.0025, 10
"""Time step of the scenes [s], and time steps from one frame to the next."""


class Scene(NamedTuple):
    """A model and its controls."""

    title: str
    model: str
    """The model in MJCF, without its options."""
    seconds: float
    controls: Callable[[jax.Array], jax.Array] = lambda time: jnp.zeros(0)
    """The controls at a time [s]."""


BLOCK, BLOCKS = 0.4, 4
"""Length of a block of the stacks [m], and blocks in each."""
OVERHANGS = {"low": 0.8, "high": 1.2}
"""Overhangs of each stack, as shares of the largest that stand."""


def stacks() -> str:
    """Return a stack with overhangs just below the limit, and one just above it."""
    bodies = []
    for (name, share), y, color in zip(
        OVERHANGS.items(), (-0.35, 0.35), (".25 .5 .85 1", ".95 .55 .2 1"), strict=True
    ):
        x = 0.0
        for row in range(BLOCKS):
            # The n blocks above an edge balance on it if the lowest of them has this overhang.
            x += share * BLOCK / (2 * (BLOCKS - row)) if row else 0.0
            bodies.append(
                f'<body name="{name}_{row}" pos="{x} {y} {0.06 + 0.12 * row}"><freejoint/>'
                f'<geom type="box" size="{BLOCK / 2} .15 .06" mass="1" rgba="{color}"/></body>'
            )
    return f'<worldbody><geom type="plane" size="2 2 .1"/>{"".join(bodies)}</worldbody>'


CRANK, COUPLER, ROCKER, GROUND = 0.2, 0.45, 0.4, 0.5
"""Lengths of the linkage's bars [m]. The crank can rotate: 0.2 + 0.5 < 0.45 + 0.4 (Grashof)."""
CRANK_RATE = 2.5
"""Rate of the crank [rad/s]."""


def linkage() -> str:
    """Return a four-bar linkage, whose crank has a motor that keeps a rate.

    At the start the crank lies along the ground, and points away from the rocker.
    """
    reach = GROUND + CRANK  # from the crank's end to the rocker's joint
    lean = np.arccos((COUPLER**2 + reach**2 - ROCKER**2) / (2 * COUPLER * reach))
    top = np.array([COUPLER * np.cos(lean) - CRANK, COUPLER * np.sin(lean)])
    tilt = np.arctan2(top[1], top[0] - GROUND)

    def bar(length: float, color: str) -> str:
        return (
            f'<geom type="capsule" fromto="0 0 0 {length} 0 0" size=".02" mass="{length}" '
            f'rgba="{color} 1" contype="0" conaffinity="0"/>'
        )

    return f"""<worldbody>
<geom type="box" size="{GROUND / 2} .01 .015" pos="{GROUND / 2} .06 1" rgba=".5 .5 .5 1"/>
<geom type="plane" size="2 2 .1" pos="0 0 .5"/>
<body name="crank" pos="0 0 1" euler="0 180 0"><joint name="crank" axis="0 -1 0"/>
{bar(CRANK, ".95 .55 .2")}
<body name="coupler" pos="{CRANK} 0 0" euler="0 {-180 - np.degrees(lean)} 0">
<joint name="coupler" axis="0 -1 0"/>{bar(COUPLER, ".25 .5 .85")}</body></body>
<body name="rocker" pos="{GROUND} 0 1" euler="0 {-np.degrees(tilt)} 0">
<joint name="rocker" axis="0 -1 0"/>{bar(ROCKER, ".3 .65 .35")}</body></worldbody>
<equality><connect body1="coupler" body2="rocker" anchor="{COUPLER} 0 0"
solref=".005 1"/></equality>
<actuator><velocity joint="crank" kv="20"/></actuator>"""


ABOVE, ALONG = 0.2, 0.05
"""Distances of the tendon's ends from the elbow: up the post, and along the forearm [m]."""
WEIGHT, LEVER, STIFFNESS = 9.81 * 1.0, 0.25, 1500.0
"""Weight of the forearm [N], distance of its centre from the elbow [m]; the servo's gain [N/m]."""
PULLS = (0.194, 0.1725, 0.144)
"""Lengths of the tendon that the servo wants, in turn [m]."""


def arm() -> str:
    """Return a forearm that a servo raises and lowers by the length of a tendon."""
    return f"""<worldbody><geom type="plane" size="2 2 .1"/>
<geom type="capsule" fromto="0 0 0 0 0 .75" size=".025" rgba=".5 .5 .5 1"/>
<site name="post" pos="0 0 {0.5 + ABOVE}"/>
<geom type="sphere" size=".03" pos="0 0 {0.5 + ABOVE}" rgba=".95 .55 .2 1"/>
<body name="forearm" pos="0 0 .5"><joint name="elbow" axis="0 -1 0" damping=".3"/>
<inertial pos="{LEVER} 0 0" mass="1" diaginertia=".001 .01 .01"/>
<geom type="capsule" fromto="0 0 0 .5 0 0" size=".02" rgba=".25 .5 .85 1" contype="0"
conaffinity="0"/>
<geom type="sphere" size=".06" pos="{LEVER} 0 0" rgba=".25 .5 .85 1" contype="0" conaffinity="0"/>
<geom type="sphere" size=".03" pos="{ALONG} 0 0" rgba=".95 .55 .2 1" contype="0" conaffinity="0"/>
<site name="forearm" pos="{ALONG} 0 0"/></body></worldbody>
<tendon><spatial name="muscle"><site site="post"/><site site="forearm"/></spatial></tendon>
<actuator><position tendon="muscle" kp="{STIFFNESS}"/></actuator>"""


def pull(time: jax.Array) -> jax.Array:
    """Return the length that the servo wants: one of `PULLS` after the other."""
    times = jnp.array([0.0, 3.0, 4.0, 6.0, 7.0, 9.0])
    return jnp.interp(time, times, jnp.repeat(jnp.array(PULLS), 2))[None]


SLOPE = np.radians(10.0)
RADIUS, LENGTH = 0.1, 3.0
"""Radius of what rolls, and length of the race [m]."""
INERTIA = {"sphere": 2 / 5, "cylinder": 1 / 2, "hoop": 1.0}
"""Moments of inertia, as shares of mass times radius squared."""


def race() -> str:
    """Return a sphere, a cylinder and a hoop at rest on a slope."""

    def place(along: float, above: float) -> str:
        x = along * np.cos(SLOPE) + above * np.sin(SLOPE)
        return f"{x} {{}} {above * np.cos(SLOPE) - along * np.sin(SLOPE)}"

    tilt = f'euler="0 {np.degrees(SLOPE)} 0"'
    colors = dict(sphere=".25 .5 .85 1", cylinder=".95 .55 .2 1", hoop=".3 .65 .35 .3")
    bodies = []
    for y, (name, share) in zip((-0.4, 0.0, 0.4), INERTIA.items(), strict=True):
        wheel = 'type="cylinder" size=".1 .04" euler="90 0 0"'
        shape = 'type="sphere" size=".1"' if name == "sphere" else wheel
        # Spots show the rotation, and draw the hoop's ring. They do not collide.
        angles = np.arange(24) * np.pi / 12 if name == "hoop" else np.array([0.0, np.pi])
        spots = [
            f'<geom type="sphere" size=".02" rgba=".1 .2 .15 1" contype="0" conaffinity="0" '
            f'pos="{0.085 * np.cos(angle)} {side} {0.085 * np.sin(angle)}"/>'
            for angle in angles
            for side in (-0.035, 0.035)
        ]
        moment = share * RADIUS**2
        bodies.append(
            f'<body name="{name}" pos="{place(0, RADIUS).format(y)}"><freejoint/>'
            f'<inertial pos="0 0 0" mass="1" diaginertia="{moment} {moment} {moment}"/>'
            f'<geom {shape} rgba="{colors[name]}"/>{"".join(spots)}</body>'
        )
    return f"""<worldbody>
<geom type="plane" size="2.6 .8 .1" pos="{place(2.1, 0).format(0)}" {tilt}/>
<geom type="box" size=".01 .7 .002" pos="{place(LENGTH, 0).format(0)}" {tilt} rgba=".8 .2 .2 1"
contype="0" conaffinity="0"/>{"".join(bodies)}</worldbody>"""


SCENES = {
    "stacks": Scene("Two stacks", stacks(), 3.0),
    "linkage": Scene("Four-bar linkage", linkage(), 6.0, lambda _: jnp.array([CRANK_RATE])),
    "arm": Scene("Arm with a tendon", arm(), 9.0, pull),
    "race": Scene("Race on a slope", race(), 2.7),
}


def system(name: str) -> System:
    """Return the system of a scene."""
    options = (
        f'<option timestep="{TIMESTEP}" cone="elliptic" impratio="10" integrator="implicitfast"/>'
        '<default><geom solref=".01 1"/></default>'
    )
    return mjcf.loads(f"<mujoco>{options}{SCENES[name].model}</mujoco>")


def simulate(name: str) -> tuple[System, State]:
    """Return a scene's system, and its states, a frame each."""
    scene, sys = SCENES[name], system(name)
    pipeline = plugins.get("pipeline", "generalized")

    def frame(state: State, time: jax.Array) -> tuple[State, State]:
        controls = scene.controls(time)
        return pipeline.step(sys, state, controls, SUBSTEPS), state

    @jax.jit
    def play() -> State:
        start = pipeline.init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
        times = jnp.arange(0, scene.seconds, SUBSTEPS * TIMESTEP)
        return jax.lax.scan(frame, start, times)[1]

    return sys, play()
