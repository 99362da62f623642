"""Population search, under the path that users import."""

from brax.training.learning.population import PolicyNetworks as PolicyNetworks
from brax.training.learning.population import SearchLearner as SearchLearner
from brax.training.learning.population import SearchState as SearchState
from brax.training.learning.population import make_inference_fn as make_inference_fn
