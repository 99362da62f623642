"""Soft constraints of the generalized pipeline, as MuJoCo defines them.

The friction cone is enforced in `constraint_laws`: `PyramidalCone.response` and
`EllipticCone.response` return the force of a contact, which lies in the cone. `contact` builds
these laws from distances and softness. The folder has one module a kind of constraint (`contact`,
`joint_limit`, `scalar`, `body_equality`, `coupling`, `adhesion`), and the layout of the constraint
rows (`constraint_layout`, `coupling_layout`). Only `brax.generalized` imports it, apart from
`inverse_weights`, which `brax.builder` calls once a model. Start reading at `evaluation`, which
evaluates all constraints at a state.
"""
