"""Every field of MuJoCo's model is read, refused, ignored with a note, or without effect on motion.

A field that a new MuJoCo brings is in no class, and fails the first test. The other tests change
each field that should not pass in silence, and look for the change in the system or in the report.
"""

import re

import jax
import mujoco
import numpy as np
import pytest

from brax.errors import ModelError
from brax.io import mjcf

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inertia matrix is too close"),
    pytest.mark.skipif(
        int(mujoco.__version__.split(".")[0]) < 4, reason="the tables are those of MuJoCo 4"
    ),
]

MODEL = """<mujoco><compiler angle="radian"/><option density="1.2" viscosity=".1"/>
<asset><hfield name="hills" nrow="2" ncol="2" size="1 1 1 1" elevation="0 1 1 0"/></asset>
<worldbody><geom type="hfield" hfield="hills" pos="0 0 -9"/><site name="base"/>
<body name="ball" pos="0 0 1" gravcomp=".5"><freejoint/>
<geom name="g" type="box" size=".1 .2 .3" fluidshape="ellipsoid"/></body>
<body name="arm" pos="1 0 0"><joint name="j" axis="0 1 0" range="-1 1" limited="true"
stiffness="2" springref=".3" damping=".1" frictionloss=".2" armature=".01" margin=".1"
actuatorfrcrange="-5 5" actuatorfrclimited="true"/><geom name="h" size=".1"/>
<site name="tip" pos=".2 0 0"/><camera name="eye"/></body></worldbody>
<contact><pair geom1="g" geom2="h"/></contact>
<equality><connect body1="arm" anchor="0 0 0"/></equality>
<tendon><fixed name="t" actuatorfrcrange="-3 3" range="-1 1" limited="true" stiffness="1"
damping=".1" frictionloss=".1" margin=".1"><joint joint="j" coef="1"/></fixed></tendon>
<actuator><general joint="j" dyntype="filter" dynprm=".1" gainprm="2" biastype="affine"
biasprm="0 -1 -.1" ctrllimited="true" ctrlrange="-1 1" forcelimited="true" forcerange="-9 9"
actlimited="true" actrange="-1 1"/><muscle joint="j" lengthrange="-1 2"/>
<adhesion body="arm" ctrlrange="0 1"/>
<motor cranksite="tip" slidersite="base" cranklength="3"/></actuator>
<sensor><jointpos joint="j" cutoff="2"/></sensor>
<custom><numeric name="vel_damping" data="-.1"/></custom>
<keyframe><key name="k"/></keyframe></mujoco>"""

READ = {
    "body": "gravcomp inertia ipos iquat mass pos quat",
    "jnt": """actfrclimited actfrcrange actgravcomp axis limited margin pos range solimp solref
        stiffness stiffnesspoly""",
    "dof": "armature damping dampingpoly frictionloss solimp solref",
    "geom": """adhesion conaffinity condim contype fluid friction gap margin pos priority quat rgba
        size solimp solmix solref surfacevel""",
    "site": "pos quat size",
    "hfield": "data size",
    "pair": "adhesion dim friction gap margin solimp solref solreffriction",
    "eq": "active0 data solimp solref",
    "tendon": """actfrclimited actfrcrange armature damping dampingpoly frictionloss lengthspring
        limited margin range solimp_fri solimp_lim solref_fri solref_lim stiffness
        stiffnesspoly""",
    "wrap": "prm",
    "actuator": """acc0 actearly actlimited actrange armature biasprm cranklength ctrllimited
        ctrlrange damping dampingpoly dynprm forcelimited forcerange gainprm gear lengthrange""",
    "sensor": "cutoff",
    "cam": "fovy pos quat",
    "key": "act ctrl qpos qvel",
    "numeric": "data",
    "opt": """density disableactuator disableflags gravity impratio iterations ls_iterations
        timestep viscosity wind""",
    "qpos0": "",
    "qpos": "spring",
}
"""Numbers and flags that the system has: a change of one changes the system."""

REFUSED = {"jnt": "springyield", "tendon": "springyield", "actuator": "delay"}
"""Numbers and flags that would change the motion and are not supported."""

NOTED = {
    "opt": """ccd_iterations ccd_tolerance jacobian ls_tolerance magnetic noslip_iterations
        noslip_tolerance sdf_initpoints sdf_iterations solver tolerance""",
    "cam": "projection",
    "key": "time",
}
"""Settings that are ignored, as the report says."""

TYPES = {
    "body": "jntadr jntnum mocapid parentid plugin rootid weldid",
    "jnt": "bodyid dofadr qposadr type",
    "dof": "jntid",
    "geom": "bodyid dataid plugin type",
    "site": "bodyid type",
    "hfield": "adr ncol nrow",
    "mesh": "extrema face faceadr facenum graph graphadr pos quat vert vertadr vertnum",
    "exclude": "signature",
    "pair": "geom1 geom2",
    "eq": "obj1id obj2id objtype type",
    "tendon": "adr num type",
    "wrap": "objid type",
    "actuator": "actadr actnum biastype dyntype gaintype group plugin trnid trntype",
    "sensor": "delay dim history objid objtype plugin refid reftype type",
    "cam": "bodyid intrinsic ipd mode sensorsize targetbodyid",
    "key": "mpos mquat",
    "numeric": "adr size",
    "text": "adr data size",
    "tuple": "adr objid objprm objtype size",
    "mat": "rgba texid",
    "tex": "adr data height nchannel type width",
    "opt": "cone enableflags integrator o_friction o_margin o_solimp o_solref",
}
"""Types, references and flags that are read, and decide which element is supported; tests of
their own change them. `o_*` have an effect only with the flag `override`, which is refused."""

WITHOUT_EFFECT = {
    "body": "bvhadr bvhnum margin sameframe user contype conaffinity geomadr geomnum dofadr dofnum",
    "jnt": "group user actuatorid plasticadr",
    "geom": "castshadow group matid user",
    "site": "dataid group matid rgba user",
    "pair": "signature",
    "tendon": "group matid plasticadr rgba user width",
    "actuator": "ctrlspec history historyadr user",
    "sensor": "adr datatype historyadr intprm interval needstage noise user",
    "cam": "output resolution user",
    "key": "plastic",
    "opt": "sleep_tolerance",
    "mat": "emission metallic reflectance roughness shininess specular texrepeat texuniform",
    "tex": "colorspace contenttypeadr pathadr",
    "mesh": """bvhadr bvhnum facenormal facetexcoord normal normaladr normalnum octadr octnum
        pathadr polyadr polymap polymapadr polymapnum polynormal polynum polyvert polyvertadr
        polyvertnum scale texcoord texcoordadr texcoordnum""",
    "hfield": "pathadr",
    "plugin": "attr attradr stateadr statenum",
}
"""Fields that only are drawn, belong to the user or the file, or to elements that are refused.

Plastic numbers need a `springyield`, those of delays and plugins an element that is
refused.
"""

DERIVED = {
    "body": "invweight0 simple subtreemass treeid",
    "dof": "M0 Madr bodyid invweight0 length parentid simplenum treeid",
    "geom": "aabb rbound sameframe",
    "site": "sameframe",
    "tendon": "invweight0 length0 treeid treenum actuatorid",
    "actuator": "ctrladr ctrlnum length0 outadr outnum",
    "cam": "mat0 pos0 poscom0",
}
"""Fields that MuJoCo computes from others."""

WHOLE = (
    *("B_", "C_", "D_", "M_", "efm0_", "efmC_", "map", "ten_J_"),  # sparsity
    *("bvh_", "oct_", "tree_", "flg_"),  # computed from others
    *("names", "name_", "nuser_", "paths", "signature"),
    *("light_", "skin_", "stat", "vis"),  # looks
    *("flex_", "flexedge_"),  # refused
)
"""Beginnings of fields that belong together."""

TABLES = (READ, REFUSED, NOTED, TYPES, WITHOUT_EFFECT, DERIVED)


def names_of(table):
    return [
        f"{kind}_{name}" if name else kind
        for kind, words in table.items()
        for name in words.split() or [""]
    ]


def fields(model):
    own = [f for f in dir(model) if not f.startswith("_") and not callable(getattr(model, f))]
    return [*own, *(f"opt_{f}" for f in dir(model.opt) if not f.startswith("_"))]


def test_every_field_is_in_one_class():
    """Counts, such as nq and nflexvert, are of what the other fields hold."""
    classified = [name for table in TABLES for name in names_of(table)]
    assert len(set(classified)) == len(classified)
    there = [
        f
        for f in fields(mujoco.MjModel.from_xml_string(MODEL))
        if not re.fullmatch("n[a-zA-Z0-9]*(_map)?|plugin|opt", f) and not f.startswith(WHOLE)
    ]
    assert sorted(there) == sorted(classified)


def changed(name):
    """Return the model with another value of a field, which it must have."""
    model = mujoco.MjModel.from_xml_string(MODEL)
    owner, name = (model.opt, name[4:]) if name.startswith("opt_") else (model, name)
    value = np.asarray(getattr(owner, name))
    assert value.size
    flag = value.dtype == bool or name.endswith(("limited", "early", "active0", "gravcomp"))
    if flag and value.dtype.kind in "biu":
        new = 1 - value.astype(int)
    else:
        new = value + (1 if value.dtype.kind in "iu" else 0.013)
    if name == "disableflags":
        new = value | int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    if value.ndim:
        getattr(owner, name)[:] = new
    else:
        setattr(owner, name, new.item())
    return model


def leaves(system):
    flat, structure = jax.tree.flatten(system.replace(file_model=None))
    return [np.asarray(leaf).tolist() for leaf in flat], str(structure)


@pytest.fixture(scope="module")
def plain():
    return leaves(mjcf.load_model(mujoco.MjModel.from_xml_string(MODEL)))


@pytest.mark.slow
@pytest.mark.parametrize("name", names_of(READ))
def test_a_field_that_is_read_changes_the_system(plain, name):
    try:
        assert leaves(mjcf.load_model(changed(name))) != plain
    except ModelError as error:  # out of the allowed range
        assert error.problems


def findings(model):
    return {f for f in mjcf.report(model) if f.status in ("refused", "ignored")}


@pytest.mark.parametrize("name", [*names_of(REFUSED), *names_of(NOTED)])
def test_a_field_that_is_not_read_is_in_the_report(name):
    plain = findings(mujoco.MjModel.from_xml_string(MODEL))
    status = "refused" if name in names_of(REFUSED) else "ignored"
    assert status in {f.status for f in findings(changed(name)) - plain}
