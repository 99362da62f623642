# /// script
# dependencies = ["qdax"]
# ///
"""MAP-Elites fills an archive with policies of `walker2d_uni`, two iterations."""

import functools

import jax
import jax.numpy as jnp
from qdax.core.containers.mapelites_repertoire import compute_cvt_centroids
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.map_elites import MAPElites
from qdax.tasks.brax.v2.env_creators import create_default_brax_task_components
from qdax.utils.metrics import default_qd_metrics

key = jax.random.key(0)
env, policy, score = create_default_brax_task_components("walker2d_uni", key, 20, (8,), False)
emitter = MixingEmitter(
    mutation_fn=lambda params, key: (params, key),
    variation_fn=functools.partial(isoline_variation, iso_sigma=0.05, line_sigma=0.1),
    variation_percentage=1.0,
    batch_size=4,
)
search = MAPElites(score, emitter, functools.partial(default_qd_metrics, qd_offset=0.0))
centroids = compute_cvt_centroids(env.descriptor_length, 100, 10, 0.0, 1.0, key)
obs = jnp.zeros(env.observation_size)
params = jax.vmap(policy.init, in_axes=(0, None))(jax.random.split(key, 4), obs)
archive, state, _ = search.init(params, centroids, key)
for _ in range(2):
    key, draw = jax.random.split(key)
    archive, state, metrics = search.update(archive, state, draw)
    print(metrics["coverage"])
