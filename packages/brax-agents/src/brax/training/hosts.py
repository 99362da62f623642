"""Training in several processes, under the path that users import."""

from brax.training.distributed.hosts import HEARTBEAT_SECONDS as HEARTBEAT_SECONDS
from brax.training.distributed.hosts import agreed as agreed
from brax.training.distributed.hosts import alone as alone
from brax.training.distributed.hosts import check_alike as check_alike
from brax.training.distributed.hosts import first as first
from brax.training.distributed.hosts import join as join
from brax.training.distributed.hosts import largest as largest
from brax.training.distributed.hosts import put as put
from brax.training.distributed.hosts import together as together
from brax.training.distributed.hosts import told_of_loss as told_of_loss
from brax.training.distributed.hosts import whole as whole
