# /// script
# dependencies = ["evox", "torch"]
# ///
"""`BraxProblem` evaluates a population of Torch policies on the inverted pendulum."""

import torch
from evox.problems.neuroevolution.brax import BraxProblem
from evox.utils import ParamsAndVector

model = torch.nn.Linear(4, 1)
adapter = ParamsAndVector(dummy_model=model)
problem = BraxProblem(
    policy=model,
    env_name="inverted_pendulum",
    max_episode_length=10,
    num_episodes=2,
    pop_size=3,
    device=torch.device("cpu"),
)
population = torch.stack([adapter.to_vector(dict(model.named_parameters()))] * 3)
rewards = problem.evaluate(adapter.batched_to_params(population))
assert rewards.shape == (3,)
print(rewards)
