"""Settings of Google's brax that tune its solvers and have no effect on ours.

`Base.replace` accepts them with a warning, and model files may have them as custom numbers.
"""

_JOINTS = "joints are as stiff as the time step allows, and damped by `dof.damping`"

SYSTEM = {
    "spring_mass_scale": "true masses are used",
    "spring_inertia_scale": "true inertias are used",
    "joint_scale_pos": _JOINTS,
    "joint_scale_ang": _JOINTS,
    "collide_scale": "contacts are resolved completely in each step",
    "matrix_inv_iterations": "the mass matrix is factorized exactly",
}
"""Settings of the model, and why they have no effect."""

LINK = {
    "constraint_stiffness": _JOINTS,
    "constraint_limit_stiffness": "limits of joints are as stiff as the time step allows",
    "constraint_ang_damping": _JOINTS,
    "constraint_vel_damping": _JOINTS,
}
"""Settings of links, and why they have no effect."""

ZERO = ("spring_mass_scale", "spring_inertia_scale")
"""Exponents that can be read: they are zero, since masses and inertias are not scaled."""
