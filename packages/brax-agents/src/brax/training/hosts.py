"""Training in several processes, under the path that users import."""

from brax.training.distributed.hosts import first as first
from brax.training.distributed.hosts import join as join
from brax.training.distributed.hosts import together as together
