"""The types of `train`'s keyword arguments are the agents' dataclasses."""

import dataclasses
import importlib
import inspect
import typing

import agent_settings
import pytest


def _train(agent):
    return importlib.import_module(f"brax.training.agents.{agent.name}.train").train


def test_the_types_of_settings_are_up_to_date():
    assert agent_settings.PAGE.read_text("utf-8") == agent_settings.page(), (
        "brax/training/agents/settings.py is not what the agents' dataclasses say: run `hatch run "
        "settings`."
    )


@pytest.mark.parametrize("agent", agent_settings.AGENTS, ids=lambda agent: agent.name)
def test_train_takes_every_setting_of_its_agent_and_no_other(agent):
    train = _train(agent)
    (typed,) = typing.get_args(typing.get_type_hints(train)["settings"])
    fields = {f.name for cls in (agent.config, agent.runtime) for f in dataclasses.fields(cls)}
    names = {*fields, *agent.config.old_names, *agent.config.unsupported} - {"num_timesteps"}
    assert set(typing.get_type_hints(typed)) == names


@pytest.mark.parametrize("agent", agent_settings.AGENTS, ids=lambda agent: agent.name)
def test_the_docstring_names_every_parameter(agent):
    train = _train(agent)
    doc = inspect.getdoc(train)
    assert doc
    assert all(
        f" {name}: " in doc.replace("**", "") for name in inspect.signature(train).parameters
    )
    assert f"fields of `{agent.config.__name__}`" in doc
