"""Network factories, under the path that users import."""

from typing import TYPE_CHECKING

from brax.training._removed import explain_removed
from brax.training.nn.networks import ACTIVATION as ACTIVATION
from brax.training.nn.networks import KERNEL_INITIALIZER as KERNEL_INITIALIZER
from brax.training.nn.networks import MLP as MLP
from brax.training.nn.networks import ActivationFn as ActivationFn
from brax.training.nn.networks import Critics as Critics
from brax.training.nn.networks import FeedForwardNetwork as FeedForwardNetwork
from brax.training.nn.networks import Initializer as Initializer
from brax.training.nn.networks import NormalHead as NormalHead
from brax.training.nn.networks import Reader as Reader
from brax.training.nn.networks import activation_of as activation_of
from brax.training.nn.networks import check_size as check_size
from brax.training.nn.networks import initializer_of as initializer_of
from brax.training.nn.networks import make_mlp as make_mlp
from brax.training.nn.networks import make_policy_network as make_policy_network
from brax.training.nn.networks import make_q_network as make_q_network
from brax.training.nn.networks import make_value_network as make_value_network
from brax.training.nn.networks import observation_width as observation_width
from brax.training.nn.networks import of_module as of_module
from brax.training.nn.networks import single as single
from brax.training.nn.networks import vector as vector
from brax.training.nn.networks import widths as widths

if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
