"""The rounds of successive halving: how candidates share the training steps of a run."""

import itertools
from typing import NamedTuple

ROUND = 8
"""A round is this part of the training steps of the candidate that is left."""


class Rounds(NamedTuple):
    """The division of a run's training steps among candidates."""

    number: tuple[int, ...]
    """Candidates that learn in each round; the last round has one."""
    length: int
    """Training steps of each candidate in a round, except the last."""
    own: int
    """Training steps of the candidate that is left."""

    @property
    def ends(self) -> tuple[int, ...]:
        """Training steps of the run after which each round ends, except the last."""
        return tuple(itertools.accumulate(n * self.length for n in self.number[:-1]))


def divide(total: int, candidates: int) -> Rounds:
    """Divide the training steps of a run among its candidates.

    Args:
        total: training steps of the run.
        candidates: candidates at the start.
    """
    number = _halved(candidates)
    length = total // parts(candidates)
    return Rounds(number, length, total - length * (sum(number[:-1]) - len(number) + 1))


def parts(candidates: int) -> int:
    """Return the number of parts of a run, each as long as a round of one candidate."""
    before = _halved(candidates)[:-1]
    return ROUND + sum(before) - len(before)


def _halved(candidates: int) -> tuple[int, ...]:
    """Return how many candidates learn in each round."""
    number = [candidates]
    while number[-1] > 1:
        number.append(-(-number[-1] // 2))
    return tuple(number)
