"""Draws a system without a screen, with MuJoCo's renderer."""

import contextlib
import ctypes.util
import importlib
import os
import sys as platform
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import mujoco
import numpy as np

from brax.base import System, Transform
from brax.errors import ConfigError, closest
from brax.io import _arguments
from brax.io.rendering.camera import camera_poses
from brax.io.viewer import scene

_LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
"""The OpenGL libraries for machines without a screen, in order of preference."""

_MAX_SIDE = 8192
"""Maximum side of a picture [pixels]; larger ones take gigabytes."""

_DISTANCE = 3.0
"""Distance of the camera in radii of the scene; 2.6 would just fill its 45 degrees."""


class Canvas:
    """A drawing surface for one system; `canvas` opens and closes it."""

    def __init__(self, sys: System, height: int, width: int, camera: Any) -> None:
        self._model = _drawable(sys, height, width)
        self._data = mujoco.MjData(self._model)
        self._links = scene.frame_names(sys)
        own = isinstance(camera, mujoco.MjvCamera)
        self._camera = camera if own else mujoco.MjvCamera()
        self._sys, self._mounted = sys, None if own else _number(sys, camera)
        # The poses of the model's camera, one for each picture, drawn in order.
        self._eyes = Transform.create(pos=np.zeros((0, 3)))
        self._drawn = 0
        if self._mounted is not None:
            self._model.cam_fovy[0] = float(sys.camera.fovy[self._mounted])
            self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, 0
        self._followed = None if own or self._mounted is not None else self._index(camera)
        self._scene = mujoco.MjvScene(self._model, maxgeom=len(sys.geom_names) + 100)
        self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._size = mujoco.MjrRect(0, 0, width, height)

    def close(self) -> None:
        """Release the renderer's resources."""
        self._context.free()

    def aim(self, pos: np.ndarray, rot: np.ndarray) -> None:
        """Set the camera for a whole trajectory of poses, (frames, n, 3) and (frames, n, 4).

        One of the model's cameras moves as the model specifies. Any other camera is placed so that
        it sees the whole trajectory.
        """
        if self._mounted is not None:
            self._eyes = camera_poses(
                self._sys, self._mounted, Transform(jnp.asarray(pos), jnp.asarray(rot))
            )
        if self._followed is None:
            return
        apart = np.linalg.norm(pos - pos[:, self._followed, None], axis=-1).max()
        self._camera.distance = _DISTANCE * (apart + self._reach())
        self._camera.azimuth, self._camera.elevation = 120.0, -20.0
        self._camera.lookat[2] = pos[:, self._followed, 2].mean()

    def draw(self, pos: np.ndarray, rot: np.ndarray) -> np.ndarray:
        """Return the picture of link poses (n, 3) and (n, 4): uint8, (height, width, 3)."""
        self._data.mocap_pos[:-1], self._data.mocap_quat[:-1] = pos, rot
        if self._mounted is not None:
            self._data.mocap_pos[-1] = self._eyes.pos[self._drawn]
            self._data.mocap_quat[-1] = self._eyes.rot[self._drawn]
            self._drawn += 1
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        if self._followed is not None:
            self._camera.lookat[:2] = pos[self._followed, :2]
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            mujoco.MjvOption(),
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        pixels = np.empty((self._size.height, self._size.width, 3), np.uint8)
        mujoco.mjr_render(self._size, self._scene, self._context)
        mujoco.mjr_readPixels(pixels, None, self._size, self._context)
        # OpenGL's rows go from the bottom to the top.
        return pixels[::-1]

    def _reach(self) -> float:
        """Return the maximum distance of geoms from the origins of their links [m]."""
        moving = self._model.geom_bodyid > 0
        if not moving.any():
            return float(self._model.stat.extent)
        far = np.linalg.norm(self._model.geom_pos, axis=1) + self._model.geom_rbound
        return float(far[moving].max())

    def _index(self, link: str | None) -> int:
        """Return the index of the link that the camera follows."""
        if link is None:
            return 0
        if link not in self._links:
            cameras = list(self._sys.camera_names)
            raise ConfigError(
                f"camera: there is no camera and no link '{link}'. Cameras: "
                f"{', '.join(cameras) or 'none'}. Links: {', '.join(self._links)}."
                f"{closest(link, cameras + self._links)}"
            )
        return self._links.index(link)


def _number(sys: System, camera: str | int | None) -> int | None:
    """Return the index of the model's camera that is meant; None if it is none of them."""
    if camera is not None and not isinstance(camera, str | int):
        raise ConfigError(
            "camera must be the name or the number of a camera, the name of a link, or a "
            f"mujoco.MjvCamera, got {_arguments.kind(camera)}"
        )
    if isinstance(camera, int):
        if not 0 <= camera < len(sys.camera_names):
            raise ConfigError(f"camera {camera}: the model has {len(sys.camera_names)} cameras")
        return camera
    return sys.camera_names.index(camera) if camera in sys.camera_names else None


@contextlib.contextmanager
def canvas(sys: System, height: int, width: int, camera: Any) -> Iterator[Canvas]:
    """Open a drawing surface, and release it afterwards.

    Args:
        sys: the system.
        height: height of the pictures [pixels].
        width: width of the pictures [pixels].
        camera: name or number of one of the model's cameras, or name of a link to follow, the
            first by default; or a `mujoco.MjvCamera`.

    Raises:
        ConfigError: if an argument is not allowed, or OpenGL is missing.
        ModelError: if a geom cannot be drawn.
    """
    for name, value in {"height": height, "width": width}.items():
        if type(value) is not int or value < 1:
            raise ConfigError(f"{name} must be a positive whole number of pixels, got {value!r}")
        if value > _MAX_SIDE:
            raise ConfigError(f"{name} must be at most {_MAX_SIDE} pixels, got {value}")
    with contextlib.ExitStack() as stack:
        surface = _surface(height, width)
        stack.callback(surface.free)
        surface.make_current()
        drawing = Canvas(sys, height, width, camera)
        stack.callback(drawing.close)
        yield drawing


def _surface(height: int, width: int) -> Any:
    """Return an OpenGL context without a window."""
    library = _library()
    try:
        module = importlib.import_module(f"mujoco.{library}") if library else mujoco
        return module.GLContext(width, height)
    except Exception as error:  # each library raises its own types of errors
        raise ConfigError(
            f"cannot draw: OpenGL failed ({type(error).__name__}: {error}). To draw without a "
            "graphics card: apt install libosmesa6, and set MUJOCO_GL=osmesa"
        ) from error


def _library() -> str:
    """Return the OpenGL library to use: what `MUJOCO_GL` says, else what is installed.

    It is empty if the choice is MuJoCo's.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower()
    if asked or platform.platform != "linux":
        return asked
    found = [name for name, file in _LIBRARIES.items() if ctypes.util.find_library(file)]
    if not found:
        raise ConfigError(
            "drawing needs OpenGL without a screen, and neither EGL nor OSMesa is installed: "
            "apt install libosmesa6 (draws on the CPU), or libegl1 and a driver"
        )
    return found[0]


def _drawable(sys: System, height: int, width: int) -> mujoco.MjModel:
    """Return a MuJoCo model that looks like the system: every link is a mocap body."""
    spec = mujoco.MjSpec()
    # MuJoCo's offscreen buffer has this size, and is 640 by 480 if nothing is set.
    spec.visual.global_.offheight, spec.visual.global_.offwidth = height, width
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.35] * 3, [0.4] * 3
    _sky_and_floor(spec)
    spec.worldbody.add_light(
        pos=[0, 0, 10],
        dir=[0.3, 0.3, -1],
        diffuse=[0.6] * 3,
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        castshadow=False,  # without a graphics card shadows take half of the time
    )
    count = len(scene.frame_names(sys))
    # The poses are set from outside, so nothing needs joints or dynamics.
    bodies = [spec.worldbody.add_body(name=f"link{i}", mocap=True) for i in range(count)]
    eye = spec.worldbody.add_body(name="eye", mocap=True)
    eye.add_camera(name="eye")
    for i, geom in enumerate(scene.describe(sys)["geoms"]):
        _add(spec, spec.worldbody if geom["link"] < 0 else bodies[geom["link"]], i, geom)
    return spec.compile()


def _sky_and_floor(spec: mujoco.MjSpec) -> None:
    spec.add_texture(
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.75, 0.83, 0.9],
        rgb2=[0.95, 0.97, 1.0],
        width=64,
        height=384,
    )
    spec.add_texture(
        name="floor",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.72, 0.75, 0.78],
        rgb2=[0.62, 0.66, 0.7],
        width=256,
        height=256,
    )
    floor = spec.add_material(name="floor", texrepeat=[0.5, 0.5], texuniform=True)
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "floor"


def _add(spec: mujoco.MjSpec, body: Any, index: int, geom: dict[str, Any]) -> None:
    """Add a geom to a body."""
    frame = {"pos": geom["pos"], "quat": geom["rot"]}
    if "mesh" in geom:
        mesh = spec.add_mesh(name=f"mesh{index}")
        mesh.uservert = np.ravel(geom["mesh"]["vertices"])
        mesh.userface = np.ravel(geom["mesh"]["faces"])
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # an open mesh has no volume
        kind, look = mujoco.mjtGeom.mjGEOM_MESH, {"meshname": mesh.name, "rgba": geom["rgba"]}
    elif geom["type"] == "plane":
        kind, look = mujoco.mjtGeom.mjGEOM_PLANE, {"size": [0, 0, 1], "material": "floor"}
    else:
        kind = getattr(mujoco.mjtGeom, f"mjGEOM_{geom['type'].upper()}")
        # Coinciding surfaces, such as the two caps at a knee, would flicker (z-fighting).
        size = np.array(geom["size"]) * (1 + 0.003 * (index % 4))
        look = {"size": size, "rgba": geom["rgba"]}
    body.add_geom(type=kind, **frame, **look)
