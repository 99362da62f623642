"""A client in the style of TorchRL: functions compiled by `jax.jit`, tensors shared by DLPack.

The client finds environments by name, flattens batches of several axes, copies nothing where
arrays meet tensors, and takes gradients of whole steps. NumPy stands for Torch.
"""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs

BATCH = (2, 3)


class Batch:
    """An environment of a batch with any axes, whose results are arrays of another library."""

    def __init__(self, name, batch):
        self._env = envs.get_environment(name)
        self.batch, self.count = batch, int(np.prod(batch))
        self.reset_all = jax.jit(jax.vmap(self._env.reset))
        self.step_all = jax.jit(jax.vmap(self._env.step))
        self._key = jax.random.PRNGKey(0)

    def reset(self):
        self._key, *keys = jax.random.split(self._key, self.count + 1)
        self.state = self.reset_all(jnp.stack(keys))
        return self.tensors(self.state)

    def step(self, action):
        flat = jnp.from_dlpack(np.ascontiguousarray(action)).reshape(self.count, -1)
        self.state = self.step_all(self.state, flat)
        return self.tensors(self.state)

    def tensors(self, state):
        fields = {"obs": state.obs, "reward": state.reward[:, None], "done": state.done[:, None]}
        shared = {name: np.from_dlpack(x) for name, x in fields.items()}
        return {name: x.reshape(*self.batch, *x.shape[1:]) for name, x in shared.items()}


@pytest.fixture(scope="module")
def env():
    return Batch("inverted_pendulum", BATCH)


def test_environments_are_found_by_name():
    assert "ant" in envs.list_environments()


def test_a_batch_of_several_axes(env):
    first = env.reset()
    assert first["obs"].shape == (*BATCH, 4) and first["done"].shape == (*BATCH, 1)
    assert len(np.unique(first["obs"][..., 0])) == env.count
    after = env.step(np.zeros((*BATCH, 1), np.float32))
    np.testing.assert_array_equal(after["reward"], 1)
    # No copy: the tensor is the array.
    assert after["obs"].ctypes.data == env.state.obs.unsafe_buffer_pointer()


def test_a_state_becomes_nested_dictionaries_and_back(env):
    """Fields are taken apart by `dataclasses.fields` and put together by `replace`."""
    env.reset()

    def nested(value):
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [f.name for f in dataclasses.fields(value)]
            return {name: nested(getattr(value, name)) for name in fields}
        return value

    def restored(example, value):
        if dataclasses.is_dataclass(type(example)):
            return example.replace(
                **{k: restored(getattr(example, k), v) for k, v in value.items()}
            )
        return value

    again = restored(env.state, nested(env.state))
    chex.assert_trees_all_equal_structs(again, env.state)
    step = env.step_all(again, jnp.zeros((env.count, 1)))
    np.testing.assert_array_equal(step.obs, env.step_all(env.state, jnp.zeros((6, 1))).obs)


def test_a_step_has_gradients(env):
    """The reward's and observation's gradient by the action, through the compiled step."""
    env.reset()

    def last(action):
        return env.step_all(env.state, action).obs[:, 2:]

    # A push to the right accelerates the cart to the right and turns the pole to the left.
    pushed = jnp.zeros((env.count, 1))
    for column, sign in enumerate((1, -1)):
        gradient = jax.grad(lambda a, column=column: last(a)[:, column].sum())(pushed)
        assert np.all(sign * gradient > 0)
