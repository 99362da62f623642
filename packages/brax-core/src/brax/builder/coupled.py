"""From checked tendons and equalities to the arrays of a `System`."""

from collections.abc import Sequence

import numpy as np

from brax.base import Equality, Tendon
from brax.builder.elements import Element
from brax.builder.numbers import array, column


def tendon_numbers(tendons: Sequence[Element], joints: Sequence[Element]) -> Tendon:
    """Of all tendons; a spring is at rest where the joints' are unless it says otherwise."""
    springref = {j.name: j.springref for j in joints}
    rest = []
    for t in tendons:
        length = sum(coef * springref[joint] for joint, coef in t.joints.items())
        rest.append((length, length) if t.lengthspring is None else t.lengthspring)
    bounds = np.array([(-np.inf, np.inf) if t.range is None else t.range for t in tendons])
    lower, upper = bounds.reshape(-1, 2).T
    return Tendon(
        coef=array([coef for t in tendons for coef in t.joints.values()], (-1,)),
        stiffness=column(tendons, "stiffness", 1)[:, 0],
        damping=column(tendons, "damping", 1)[:, 0],
        lengthspring=array(rest, (len(tendons), 2)),
        limit=(array(lower, (-1,)), array(upper, (-1,))),
        margin=column(tendons, "margin", 1)[:, 0],
        solref_limit=column(tendons, "solref_limit", 2),
        solimp_limit=column(tendons, "solimp_limit", 5),
        frictionloss=column(tendons, "frictionloss", 1)[:, 0],
        solref_friction=column(tendons, "solref_friction", 2),
        solimp_friction=column(tendons, "solimp_friction", 5),
        invweight=array(np.zeros(len(tendons)), (-1,)),
    )


def equality_numbers(equalities: Sequence[Element]) -> Equality:
    """Of all equalities."""
    return Equality(
        data=column(equalities, "data", 11),
        solref=column(equalities, "solref", 2),
        solimp=column(equalities, "solimp", 5),
        invweight=array(np.zeros((len(equalities), 2)), (-1, 2)),
    )
