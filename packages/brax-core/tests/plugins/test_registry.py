"""Discovery, isolation, conflicts and switches, with entry points made here.

The same is tested with real distributions, built as wheels, in `integration_tests/`.
"""

import itertools
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any, cast

import pytest

import brax
from brax.errors import PluginError, UnknownNameError
from brax.plugins import PluginWarning, Registry, Spec, discovery, hookimpl


class Distribution:
    def __init__(self, name, version="1.0"):
        self.name, self.version = name, version


class EntryPoint:
    """As `importlib.metadata.EntryPoint`, of a plugin or of an error that its import raises."""

    def __init__(self, distribution, plugin, name="main"):
        self.name, self.dist, self.plugin = name, Distribution(distribution), plugin

    def load(self):
        if isinstance(self.plugin, BaseException):
            raise self.plugin
        return self.plugin


def module(**attributes):
    made = types.ModuleType("acme_plugin")
    vars(made).update(attributes)
    return made


def plugin(api=1, **results):
    """Return a plugin whose hooks return what is given, or raise it."""
    hooks = {f"brax_{kinds}": hookimpl(_returning(result)) for kinds, result in results.items()}
    return module(BRAX_PLUGIN_API=api, **hooks)


def _returning(result):
    def hook():
        if isinstance(result, Exception):
            raise result
        return result

    return hook


def environments(*names, target=dict):
    return plugin(environments=[Spec(name, target) for name in names])


def registry(*entry_points, **environ):
    return Registry(lambda: entry_points, environ)


def discover(made):
    """Look something up and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.names("environment")
    assert all(w.category is PluginWarning for w in caught)
    return [str(w.message) for w in caught]


def test_looks_up_by_kind_and_name():
    made = registry(EntryPoint("acme", environments("maze", "pit")))
    assert made.get("environment", "maze") is dict
    assert made.names("environment") == ["maze", "pit"]
    found = made.specs("environment")["pit"]
    assert (found.distribution, found.version, found.name) == ("acme", "1.0", "pit")
    assert made.names("trainer") == []


def test_discovers_at_the_first_lookup_and_once():
    loads = []

    def entry_points():
        loads.append("discovered")
        return [EntryPoint("acme", environments("maze"))]

    made = Registry(entry_points, {})
    assert loads == []
    made.names("environment")
    made.names("trainer")
    assert loads == ["discovered"]


def test_importing_brax_imports_no_plugin():
    program = (
        "import sys, brax, brax.plugins; "
        "print(sorted(m for m in sys.modules if m.endswith('_plugin') and m.startswith('brax.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_targets_are_imported_when_asked_for():
    sys.modules.pop("wave", None)
    made = registry(EntryPoint("acme", environments("maze", target="wave:Wave_read")))
    made.specs("environment")
    assert "wave" not in sys.modules
    assert made.get("environment", "maze") is sys.modules["wave"].Wave_read


def test_order_is_ours_first_then_by_name_whatever_the_path_says():
    entry_points = [
        EntryPoint("zeta", environments("z")),
        EntryPoint("acme", environments("a2"), "second"),
        EntryPoint("brax-envs", environments("ours")),
        EntryPoint("Acme", environments("a1"), "first"),
        EntryPoint("brax_core", environments("core")),
    ]
    wanted = ["core", "ours", "a1", "a2", "z"]
    assert registry(*entry_points).names("environment") == wanted
    assert registry(*reversed(entry_points)).names("environment") == wanted


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (ImportError("no module named gpu"), "ImportError: no module named gpu"),
        (SystemExit(3), "SystemExit: 3"),
        (plugin(api=2, environments=[Spec("x", dict)]), "needs plugin API 2, this is plugin API 1"),
        (plugin(api=None), "has no BRAX_PLUGIN_API"),
        (plugin(api="1"), "its BRAX_PLUGIN_API is '1', not an integer"),
        (plugin(api=True), "its BRAX_PLUGIN_API is True, not an integer"),
        (
            module(BRAX_PLUGIN_API=1, brax_enviroments=list),
            "unknown hook 'brax_enviroments'. Rename it brax_environments, or set",
        ),
        (plugin(environments=ValueError("boom")), "ValueError: boom"),
        (plugin(environments=[Spec("x", dict)], commands=KeyError("k")), "KeyError: 'k'"),
        (plugin(environments=[dict]), "returned [<class 'dict'>], not a list of brax.plugins.Spec"),
        (plugin(environments=None), "brax_environments returned None"),
        (plugin(environments=[Spec("", dict)]), "environment has the name ''"),
        (plugin(environments=[Spec("x", "nowhere")]), "'nowhere' of environment 'x' is not module"),
        (plugin(enviroments=[Spec("x", dict)]), "unknown hook 'brax_enviroments'"),
        (
            plugin(environments=[Spec("x", dict), Spec("taken", list)]),
            "environment 'taken' of broken 1.0 is already registered by acme 1.0",
        ),
        (
            plugin(environments=[Spec("x", dict), Spec("x", list)]),
            "brings the environment 'x' twice",
        ),
    ],
)
def test_a_broken_plugin_is_reported_and_takes_nobody_down(broken, told):
    made = registry(
        EntryPoint("acme", environments("taken")),
        EntryPoint("broken", broken),
        EntryPoint("zeta", environments("works")),
    )
    (message,) = discover(made)
    assert "plugin broken 1.0" in message
    assert told in message
    assert "BRAX_PLUGINS_DISABLE=broken" in message
    assert made.names("environment") == ["taken", "works"]
    assert made.get("environment", "taken") is dict
    assert made.names("command") == []
    assert [s.state for s in made.statuses()] == ["loaded", "failed", "loaded"]
    assert discover(made) == []


def test_a_hook_without_its_mark_is_refused():
    unmarked = plugin(environments=[])
    unmarked.brax_trainers = list
    (message,) = discover(registry(EntryPoint("acme", unmarked)))
    assert "brax_trainers is not marked as a hook" in message


def test_a_hook_with_arguments_is_refused():
    wrong = module(BRAX_PLUGIN_API=1, brax_environments=hookimpl(lambda registry: []))
    (message,) = discover(registry(EntryPoint("acme", wrong)))
    assert "its brax_environments takes arguments: registry. Let it take none, or set" in message
    assert "\n" not in message


def test_a_misspelt_hook_gets_a_suggestion():
    (message,) = discover(registry(EntryPoint("acme", plugin(joint_type=[]))))
    assert "Rename it brax_joint_types, or set" in message


def test_a_later_plugin_is_not_blamed_for_an_earlier_one():
    made = registry(
        EntryPoint("a", plugin(joint_type=[])),
        EntryPoint("b", plugin(enviroments=[])),
        EntryPoint("c", environments("fine")),
    )
    first, second = discover(made)
    assert "plugin a 1.0" in first and "brax_joint_type" in first
    assert "plugin b 1.0" in second and "brax_enviroments" in second
    assert made.names("environment") == ["fine"]


@pytest.mark.parametrize("flip", [False, True])
def test_the_winner_of_a_name_does_not_depend_on_the_order_of_installation(flip):
    both = [EntryPoint("acme", environments("ant")), EntryPoint("zeta", environments("ant"))]
    made = registry(*(reversed(both) if flip else both))
    (message,) = discover(made)
    assert "'ant' of zeta 1.0 is already registered by acme 1.0" in message
    assert made.specs("environment")["ant"].distribution == "acme"


def test_ours_cannot_be_shadowed():
    made = registry(
        EntryPoint("aaa", environments("ant", target=list)),
        EntryPoint("brax-envs", environments("ant")),
    )
    discover(made)
    assert made.get("environment", "ant") is dict


def test_the_same_registration_twice_is_fine():
    made = registry(
        EntryPoint("acme", environments("ant"), "one"),
        EntryPoint("acme", environments("ant"), "two"),
    )
    assert discover(made) == []
    assert made.specs("environment")["ant"].origin.entry_point == "one"


def test_an_unknown_name_lists_what_there_is():
    made = registry(EntryPoint("acme", environments("ant", "hopper")))
    with pytest.raises(UnknownNameError) as caught:
        made.get("environment", "hoper")
    message = str(caught.value)
    assert message.startswith("unknown environment 'hoper'. Available: ant, hopper.")
    assert "Did you mean 'hopper'?" in message
    assert "Not installed: brax-core, brax-io, brax-envs, brax-agents." in message
    assert "hook" not in message


def test_a_name_that_is_near_to_none_says_how_to_register_it():
    made = registry(EntryPoint("acme", environments("ant", "hopper")))
    with pytest.raises(UnknownNameError, match="registers further ones by its hook brax_env"):
        made.get("environment", "swing_up:Pole")


def test_an_unknown_kind_lists_the_kinds():
    with pytest.raises(UnknownNameError, match="Did you mean 'environment'"):
        registry().get("environments", "ant")


def test_asking_for_what_a_failed_plugin_announced_names_it():
    made = registry(
        EntryPoint("acme", plugin(environments=[Spec("maze", dict)], trainers=OSError("no disk")))
    )
    discover(made)
    with pytest.raises(
        UnknownNameError, match=r"'maze' belongs to acme 1.0, which failed.*no disk"
    ):
        made.get("environment", "maze")
    with pytest.raises(UnknownNameError, match=r"acme 1.0 failed to load: OSError: no disk"):
        made.get("environment", "other")


class Unmade:
    """A trainer whose plugin forgot to make an instance."""

    name = "thing"

    def train(self, environment):
        raise NotImplementedError

    def load_policy(self, path, deterministic=True):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("kind", "target", "told"),
    [
        ("environment", "nowhere:Env", "ModuleNotFoundError: No module named 'nowhere'"),
        ("environment", "json:Env", "AttributeError"),
        ("environment", threading, "must be a class or a function, but is the module threading"),
        ("joint_type", dict, "must be an instance of brax.joints.JointType, but is the class dict"),
        ("command", print, "must be an instance of click.Command, but is builtin_function"),
        (
            "trainer",
            Unmade,
            "must be an instance, but is the class Unmade itself, whose train needs",
        ),
        ("trainer", object(), "must have name, train, load_policy, but an instance of object"),
        (
            "trainer",
            types.SimpleNamespace(name="other", train=print, load_policy=print),
            "is registered as 'thing', but its own name is 'other'",
        ),
    ],
)
def test_an_object_that_breaks_its_contract_names_plugin_and_target(kind, target, told):
    made = registry(EntryPoint("acme", plugin(**{f"{kind}s": [Spec("thing", target)]})))
    with pytest.raises(PluginError) as caught:
        made.get(kind, "thing")
    message = str(caught.value)
    assert message.startswith(f"{kind} 'thing' of acme 1.0 (")
    assert told in message


def test_a_format_has_its_name_by_any_suffix_that_is_its_own():
    first, second = (
        types.SimpleNamespace(suffixes=suffixes, load=print) for suffixes in ((".a",), (".a", ".b"))
    )
    made = registry(
        EntryPoint("acme", plugin(model_formats=[Spec("first", first)])),
        EntryPoint("zeta", plugin(model_formats=[Spec("second", "thing:second")])),
    )
    thing: Any = types.ModuleType("thing")
    thing.second = second
    sys.modules["thing"] = thing
    with pytest.warns(PluginWarning, match=r"is not used for \.a"):
        assert made.name_of("model_format", second) == "second"
    assert made.name_of("model_format", first) == "first"
    del sys.modules["thing"]


def test_a_misspelt_geometry_type_of_a_collider_is_told():
    """One that is merely not installed is not."""
    pairs = [("plane", "fresh-coen"), ("plane", "torus")]
    colliders = [Spec(f"c{i}", "nowhere:X", keys=pair) for i, pair in enumerate(pairs)]
    shapes = [Spec("plane", "nowhere:Y"), Spec("fresh-cone", "nowhere:Z")]
    made = registry(EntryPoint("acme", plugin(colliders=colliders, geometry_types=shapes)))
    told = "collider 'c0' of acme 1.0 (nowhere:X) is never used: no geometry type 'fresh-coen' is"
    assert [text.startswith(told) for text in made.clashes()] == [True]
    with pytest.warns(PluginWarning, match=r"Did you mean 'fresh-cone'\?$"):
        assert made.find("collider", "plane", "fresh-cone") is None


def test_a_geometry_type_of_another_package_may_have_a_similar_name():
    colliders = [Spec("c", "nowhere:X", keys=("plane", "fresh-cones"))]
    shapes = [Spec("plane", "nowhere:Y"), Spec("fresh-cone", "nowhere:Z")]
    made = registry(
        EntryPoint("acme", plugin(colliders=colliders, geometry_types=shapes)),
        EntryPoint("zeta", plugin(geometry_types=[Spec("fresh-cones", "nowhere:W")])),
    )
    assert made.clashes() == []
    assert made.keys("collider")["fresh-cones and plane"].name == "c"


SWITCHED = (
    EntryPoint("brax-core", environments("ours")),
    EntryPoint("acme", environments("maze")),
    EntryPoint("Zeta_Pack", environments("pit")),
)


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["ours", "maze", "pit"]),
        ({"BRAX_PLUGINS": "acme"}, ["ours", "maze"]),
        ({"BRAX_PLUGINS": " zeta.pack , acme"}, ["ours", "maze", "pit"]),
        ({"BRAX_PLUGINS": ""}, ["ours"]),
        ({"BRAX_PLUGINS_DISABLE": "acme"}, ["ours", "pit"]),
        ({"BRAX_PLUGINS_DISABLE": "brax-core,zeta-pack"}, ["maze"]),
        ({"BRAX_PLUGINS": "acme", "BRAX_PLUGINS_DISABLE": "acme"}, ["ours"]),
        ({"BRAX_PLUGINS_AUTOLOAD": "0"}, ["ours"]),
        ({"BRAX_PLUGINS_AUTOLOAD": "1"}, ["ours", "maze", "pit"]),
    ],
)
def test_switches(environ, names):
    made = registry(*SWITCHED, **environ)
    assert discover(made) == []
    assert made.names("environment") == names


def test_what_is_switched_off_is_not_imported_and_is_named():
    made = registry(EntryPoint("acme", ImportError("no")), BRAX_PLUGINS_DISABLE="acme")
    assert discover(made) == []
    with pytest.raises(UnknownNameError, match=r"acme 1.0 is switched off .*BRAX_PLUGINS_DISABLE"):
        made.get("environment", "maze")


def test_a_switch_that_names_no_plugin_is_reported():
    (message,) = discover(registry(*SWITCHED, BRAX_PLUGINS_DISABLE="acmee"))
    assert "BRAX_PLUGINS_DISABLE names 'acmee'" in message
    assert "Did you mean 'acme'?" in message


def test_trace_shows_every_hook_call(capsys):
    registry(*SWITCHED, BRAX_PLUGINS_TRACE="1").names("environment")
    shown = capsys.readouterr().err
    assert shown.count("finish brax_environments") == 3


def test_register_and_unregister():
    made = registry(EntryPoint("acme", environments("maze")))
    made.register(environments("mine", target=list), "notebook")
    assert made.get("environment", "mine") is list
    made.unregister("notebook")
    assert made.names("environment") == ["maze"]
    made.register(environments("mine", target=set), "notebook")
    assert made.get("environment", "mine") is set
    with pytest.raises(PluginError, match=r"'maze' of other is already registered by acme 1.0"):
        made.register(environments("maze"), "other")
    assert [s.origin.distribution for s in made.statuses()] == ["acme", "notebook"]
    with pytest.raises(PluginError, match=r"'notebook': it is registered already. Unregister it"):
        made.register(environments("pit"), "notebook")
    with pytest.raises(UnknownNameError, match=r"unknown plugin 'acme'. Available: notebook"):
        made.unregister("acme")


@pytest.mark.parametrize("order", list(itertools.permutations(["one", "two", "three"])))
@pytest.mark.parametrize("ours", [True, False])
def test_whatever_the_order_of_unregistering_the_last_that_is_left_has_the_name(order, ours):
    made = registry(EntryPoint("brax-envs", environments("ant") if ours else plugin()))
    left: dict[str, Any] = {"": dict} if ours else {}
    for name, target in (("one", list), ("two", set), ("three", tuple)):
        made.register(environments("ant", target=target), name, override=True)
        left[name] = target
    for name in order:
        assert made.get("environment", "ant") is list(left.values())[-1]
        made.unregister(name)
        del left[name]
    assert made.names("environment") == ["ant"] * ours
    assert not ours or made.get("environment", "ant") is dict


def test_threads_that_look_up_at_once_see_all_or_wait():
    def slow():
        release.wait(5)
        return [Spec("maze", dict)]

    release = threading.Event()
    made = registry(EntryPoint("acme", module(BRAX_PLUGIN_API=1, brax_environments=hookimpl(slow))))
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append(made.names("environment"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    release.set()
    for thread in threads:
        thread.join()
    assert seen == [["maze"]] * 4


def test_a_plugin_may_look_up_what_came_before_it():
    seen = []

    def look():
        seen.extend(made.names("environment"))
        return []

    curious = module(BRAX_PLUGIN_API=1, brax_trainers=hookimpl(look))
    made = registry(EntryPoint("acme", environments("maze")), EntryPoint("zeta", curious))
    made.names("trainer")
    assert seen == ["maze"]


def test_googles_brax_beside_ours_is_one_clear_error(tmp_path):
    info = tmp_path / "brax-0.14.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brax\nVersion: 0.14.2\n")
    (info / "RECORD").write_text("brax/__init__.py,,\n")
    (tmp_path / "brax").mkdir()
    (tmp_path / "brax" / "__init__.py").write_text("")  # Python 3.12 leaves out files that are gone
    program = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        "from brax import plugins\n"
        "try: plugins.names('environment')\n"
        "except plugins.registry.PluginError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Google's distribution 'brax' 0.14.2 is installed together with brax-core" in done.stdout
    remedy = "pip uninstall -y brax && pip install --force-reinstall --no-deps brax-core "
    assert remedy in done.stdout


def test_googles_brax_over_ours_is_one_clear_error_at_its_import(tmp_path):
    package = Path(brax.__path__[0])
    (tmp_path / "brax").mkdir()
    # Google's package imports `brax.base` when it is imported, and has replaced our `__init__`.
    (tmp_path / "brax" / "__init__.py").write_text(
        f"__path__.append({str(package)!r})\nfrom brax.base import System\n"
    )
    for line in ("import brax", "from brax import envs", "from brax.training.agents import ppo"):
        program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{line}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        last = done.stderr.splitlines()[-1]
        assert last.startswith("brax.errors.PluginError: Google's distribution 'brax' is installed")


@pytest.mark.parametrize(("name", "told"), [("Name: acme\n", "acme"), ("", "without a name")])
def test_entry_points_that_cannot_be_read_name_their_distribution(
    name, told, tmp_path, monkeypatch
):
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}Version: 1.0\n")
    (info / "entry_points.txt").write_text("[brax]\nacme\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match=f"of the installed distribution {told} cannot be read"):
        discovery.installed()


class Reader:
    """A model format."""

    def __init__(self, *suffixes):
        self.suffixes = suffixes

    def load(self, path):
        return path


def formats(*specs):
    return plugin(model_formats=list(specs))


def search(made, suffix):
    """Look for a format and return it with the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = made.find("model_format", suffix)
    return found, [str(w.message) for w in caught]


def test_only_what_has_the_key_is_imported():
    sys.modules.pop("wave", None)
    mine = Reader(".a", ".B")
    made = registry(
        EntryPoint("acme", formats(Spec("wave", "wave:Wave_read", keys=(".wav",)))),
        EntryPoint("zeta", formats(Spec("mine", mine))),
    )
    assert search(made, ".A") == (mine, [])
    assert search(made, ".b") == (mine, [])
    assert search(made, ".c") == (None, [])
    assert "wave" not in sys.modules
    with pytest.raises(PluginError, match=r"model_format 'wave' of acme 1.0 .* must have suffixes"):
        made.find("model_format", ".wav")
    assert list(made.keys("model_format")) == [".wav", ".a", ".b"]


def test_what_cannot_be_imported_takes_no_other_down():
    mine = Reader(".a")
    made = registry(
        EntryPoint("broken", formats(Spec("gone", "nowhere:READER"))),
        EntryPoint("zeta", formats(Spec("mine", mine))),
    )
    found, (message,) = search(made, ".a")
    assert found is mine
    assert message.startswith("model_format 'gone' of broken 1.0 (nowhere:READER) cannot be loaded")
    assert search(made, ".a") == (mine, [])
    with pytest.warns(PluginWarning, match="'gone' of broken 1.0"):
        assert made.all_that_load("model_format") == {"mine": mine}


@pytest.mark.parametrize("keys", [(".x", ".a"), ()])
def test_a_key_that_is_taken_is_a_clash_as_a_name_is(keys):
    """Declared, or seen on an object that is there: the plugin is left out."""
    first = Reader(".a")
    made = registry(
        EntryPoint("zeta", formats(Spec("other", Reader(".x", ".A"), keys=keys))),
        EntryPoint("acme", formats(Spec("mine", first))),
    )
    (message,) = discover(made)
    assert (
        "the model_format 'other' of zeta 1.0 is for .a, which is already registered by acme 1.0 "
        "as 'mine'. Rename it, uninstall one of the two, replace the other on purpose by "
        "BRAX_PLUGINS_OVERRIDE=zeta" in message
    )
    assert search(made, ".a") == (first, [])
    assert search(made, ".x") == (None, [])


def test_a_key_that_only_an_import_shows_keeps_its_first_owner(monkeypatch):
    monkeypatch.setitem(sys.modules, "hidden", module(READER=Reader(".a", ".x")))
    first = Reader(".a")
    made = registry(
        EntryPoint("acme", formats(Spec("hidden", "hidden:READER"))),
        EntryPoint("zeta", formats(Spec("mine", first, keys=(".a",)))),
    )
    found, (message,) = search(made, ".a")
    assert found is first
    assert message.startswith(
        "model_format 'hidden' of acme 1.0 (hidden:READER) is not used for .a,"
    )
    assert "'mine' of zeta 1.0" in message
    assert made.clashes() == [message]
    assert search(made, ".x")[0] is sys.modules["hidden"].READER


@pytest.mark.parametrize("keys", [(".a",), ()])
def test_a_key_is_replaced_on_purpose(keys):
    own = Reader(".a")
    made = registry(
        EntryPoint("acme", formats(Spec("own", own, keys=keys))),
        EntryPoint("brax-io", formats(Spec("ours", Reader(".a")))),
        BRAX_PLUGINS_OVERRIDE="acme",
    )
    assert discover(made) == []
    assert search(made, ".a") == (own, [])
    assert made.clashes() == []
    assert (made.name_of("model_format", own), made.names("model_format")) == (
        "own",
        ["ours", "own"],
    )


def test_a_name_is_replaced_on_purpose_whatever_the_order():
    made = registry(
        EntryPoint("acme", environments("ant", target=list)),
        EntryPoint("brax-envs", environments("ant")),
        BRAX_PLUGINS_OVERRIDE="acme",
    )
    assert discover(made) == []
    assert made.get("environment", "ant") is list
    (message,) = discover(registry(*SWITCHED, BRAX_PLUGINS_OVERRIDE="acmee"))
    assert "BRAX_PLUGINS_OVERRIDE names 'acmee'" in message


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        (
            "model_formats",
            Spec("x", "a:b", keys=cast(Any, ".xml")),
            "must be a tuple of suffixes, such as",
        ),
        ("model_formats", Spec("x", "a:b", keys=("xml",)), "but are ('xml',)"),
        ("colliders", Spec("x", "a:b", keys=("plane",)), "the names of two geometry types"),
        ("joint_types", Spec("x", "a:b", keys=("y",)), "a joint_type is found by its name only"),
    ],
)
def test_keys_that_are_none_are_refused(kind, spec, told):
    (message,) = discover(registry(EntryPoint("acme", plugin(**{kind: [spec]}))))
    assert told in message


@pytest.mark.parametrize(
    ("suffixes", "keys", "told"),
    [
        (".xml", (), "must have as its suffixes a tuple of suffixes, such as ('.xml',), but has"),
        ((), (), "but has ()"),
        ((".a",), (".b",), "is registered with the keys ('.b',), but its suffixes are ('.a',)"),
    ],
)
def test_an_object_whose_keys_are_none_is_refused(suffixes, keys, told):
    reader = Reader()
    reader.suffixes = suffixes
    made = registry(EntryPoint("acme", formats(Spec("x", reader, keys=keys))))
    with pytest.raises(PluginError) as caught:
        made.get("model_format", "x")
    assert told in str(caught.value)


def test_an_error_of_a_plugin_is_told_with_file_and_line(tmp_path, monkeypatch):
    (tmp_path / "acme_broken.py").write_text("import json\n\njson.loads('{')\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = registry(
        EntryPoint("acme", environments("maze", target="acme_broken:Maze")),
        EntryPoint("zeta", plugin(trainers=ValueError("boom"))),
    )
    (message,) = discover(made)
    assert f"ValueError: boom ({__file__}, line " in message
    with pytest.raises(PluginError) as caught:
        made.get("environment", "maze")
    assert "JSONDecodeError: " in str(caught.value)
    assert f"({tmp_path / 'acme_broken.py'}, line 3). Repair" in str(caught.value)
