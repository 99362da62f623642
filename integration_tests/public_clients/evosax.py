# /// script
# dependencies = ["evosax"]
# ///
"""`BraxProblem` evaluates a population of CMA-ES on the ant for two generations."""

import jax
from evosax.algorithms import CMA_ES
from evosax.problems import BraxProblem
from evosax.problems.networks import MLP

problem = BraxProblem("ant", MLP(layer_sizes=(8, 8)), episode_length=20, num_rollouts=2)
key = jax.random.key(0)
search = CMA_ES(population_size=4, solution=problem.sample(key))
state = search.init(key, problem.sample(key), search.default_params)
told = problem.init(key)
for step in jax.random.split(key, 2):
    population, state = search.ask(step, state, search.default_params)
    fitness, told, _ = problem.eval(step, population, told)
    state, _ = search.tell(step, population, -fitness, state, search.default_params)
    print(fitness)
