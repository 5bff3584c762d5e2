"""What every class of setting answers, each by a setting of a policy that has every field."""

from functools import cached_property
from typing import Any

import pytest
import yaml

from tests.policy.examples import EVERYTHING
from webhook.placement.capacity import compiled, shape
from webhook.placement.fold import fold
from webhook.placement.merge import MergeContext, Merged, merge
from webhook.placement.namespace_setting import NamespaceSetting
from webhook.placement.placement_setting import PlacementSetting
from webhook.placement.pod import parse_pod
from webhook.placement.settings import is_selector
from webhook.placement.topology import topology_keys
from webhook.policy.compile import located, settings
from webhook.policy.model import PlacementPolicy

_DOCUMENT: Any = next(
    each for each in yaml.safe_load_all(EVERYTHING) if each["kind"] == "PlacementPolicy"
)
# The last share by itself: compile takes a policy whose split has one.
_DOCUMENT["spec"]["overrides"]["split"] = [{"class": "reserved", "mode": "Constrain"}]
_DOCUMENT["spec"]["overrides"]["nodeSelector"] = {"pool": "experiments"}
_CLASSES = {
    name: compiled(name, [shape({name: "true"}, [])], [{"key": name, "effect": "NoSchedule"}])
    for name in ("spot", "on-demand", "reserved")
}
LOCATED = list(located(settings(PlacementPolicy.model_validate(_DOCUMENT), _CLASSES)))
# As it is stored if its author wrote nothing.
POD = parse_pod({"metadata": {}, "spec": {"schedulerName": "default-scheduler"}})
SETTINGS = [setting for setting, _ in LOCATED]


def _classes(root: type) -> set[type]:
    """The classes of webhook/ without subclasses; a test elsewhere may have one of its own."""
    subclasses: list[type] = root.__subclasses__()
    children = [child for child in subclasses if child.__module__.startswith("webhook.")]
    return {leaf for child in children for leaf in _classes(child)} or {root}


def placed(setting: PlacementSetting) -> Merged:
    """The result of merging this setting alone into the pod, with a value if it needs one."""
    if isinstance(setting, NamespaceSetting):
        setting = setting.valued("some")
    return merge(fold([setting.policy], [setting]), POD, (), MergeContext(_CLASSES))


def named(setting: PlacementSetting) -> str:
    return f"{setting.part}-{setting.field}"


@pytest.fixture(params=LOCATED, ids=[named(setting) for setting in SETTINGS])
def example(request: pytest.FixtureRequest) -> tuple[PlacementSetting, Any]:
    pair: tuple[PlacementSetting, Any] = request.param
    return pair


def test_the_settings_here_are_of_every_class() -> None:
    """So a new class is asked too."""
    assert {type(each) for each in SETTINGS} == _classes(PlacementSetting)


def test_a_class_answers_what_has_no_general_answer() -> None:
    """The names are those that are abstract in the base; Python itself does not hold them."""
    base = vars(PlacementSetting)
    abstract = {
        name
        for name, value in base.items()
        for body in [value.func if isinstance(value, cached_property) else value]
        if getattr(body, "__isabstractmethod__", False)
    }
    assert {"field", "describe_value", "agrees", "holds_in"} <= abstract
    for kind in _classes(PlacementSetting):
        assert {name for name in abstract if getattr(kind, name) is base[name]} == set(), kind


def test_merging_leaves_a_line_for_a_setting(example: tuple[PlacementSetting, Any]) -> None:
    """A class that no merge takes would have no effect, and nobody would see it."""
    setting, _ = example
    lines = placed(setting).trace
    assert setting.field in {line.field for line in lines if line.policy == setting.policy}


def test_a_pod_that_was_given_a_setting_holds_it_until_it_is_undone(
    example: tuple[PlacementSetting, Any],
) -> None:
    """A list of what is allowed sets nothing.

    The terms of required affinity are taken away by their condition, all policies' together.
    """
    setting, _ = example
    if isinstance(setting, NamespaceSetting):
        assert not setting.holds_in(placed(setting).placement)
        setting = setting.valued("some")
    final = placed(setting).placement
    assert (
        setting.holds_in(final)
        == (final != POD)
        == (not setting.field.endswith((".allowed", ".values")))
    )
    if setting.holds_in(final):
        assert setting.undone(final)._replace(required=None) == POD


def test_what_a_setting_demands_of_nodes_is_what_a_placed_pod_demands(
    example: tuple[PlacementSetting, Any],
) -> None:
    setting, _ = example
    final = placed(setting).placement
    assert setting.limits_nodes == bool(final.required or final.node_selector)
    valued = setting.valued("some") if isinstance(setting, NamespaceSetting) else setting
    assert is_selector(valued) == bool(final.node_selector)
    assert (setting.condition is not None) == (final.required is not None)
    assert bool(setting.node_keys) == setting.limits_nodes
    assert setting.scheduler_holds >= setting.limits_nodes
    assert tuple(setting.topology_keys) == tuple(topology_keys(final))
    assert [each for each in valued.tolerated if each not in final.tolerations] == (
        [{"operator": "Exists"}] if setting.field == "runtimeClassName" else []
    )


def test_a_setting_is_found_where_its_document_has_it(
    example: tuple[PlacementSetting, Any],
) -> None:
    setting, path = example
    value = _DOCUMENT
    for step in path:
        value = value[step]
    assert value is not None
    assert path[1] == setting.part


def test_a_setting_agrees_with_itself_and_contradicts_no_equal_one(
    example: tuple[PlacementSetting, Any],
) -> None:
    setting, _ = example
    assert setting.agrees(setting)
    assert not setting.contradicts(setting)
    assert setting.precludes(setting) == (setting.is_default or not setting.accumulates)
