"""The guards are made of the same marks and classes as all else, and those that ship are fresh."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fast_yaml import load_all_yaml
from webhook import names
from webhook.cli import fairlead
from webhook.controller.owned_objects import created_for_runs
from webhook.guards import capacity_guard, node_name_guard, run_author_guard, stamp_guard
from webhook.interception import DEFAULT_SOURCES, select_sources, webhooks
from webhook.sources import SOURCES

ROOT = Path(__file__).parents[1]
# What ships, and the command that makes it again.
SHIPPED: dict[str, list[str]] = {
    "base/run-authors.yaml": ["authors"],
    "components/guard-stamp-warn/stamp.yaml": ["stamp"],
    "components/guard-stamp-deny/stamp.yaml": ["stamp", "--action", "deny"],
    "components/guard-node-names/node-names.yaml": ["node-names"],
    "components/guard-tolerations/tolerations.yaml": ["tolerations"],
}
ALL = [source.name for source in SOURCES]
MARKS = [mark for source in SOURCES for mark in source.marks]


def printed(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What `fairlead generate guard` prints, if it succeeds."""
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(fairlead, ["generate", "guard", *arguments], prog_name="fairlead")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", SHIPPED)
def test_the_guards_that_ship_are_fresh(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each file in manifests/ is what its command prints."""
    command = SHIPPED[name]
    assert (ROOT / "manifests" / name).read_text() == printed(monkeypatch, *command), (
        f"run: fairlead generate guard {' '.join(command)} > manifests/{name}"
    )


def test_each_guard_has_its_name_and_a_message_with_the_cure() -> None:
    """Whoever is refused reads no policy: what to do is in what kubectl prints."""
    entries = webhooks()
    guards = {
        names.STAMP_GUARD: stamp_guard(entries, deny=True)[0],
        names.TOLERATIONS_GUARD: capacity_guard(entries, MARKS)[0],
        names.NODE_NAMES_GUARD: node_name_guard(entries, ["a:scheduler"])[0],
        names.RUN_AUTHORS_GUARD: run_author_guard(created_for_runs())[0],
    }
    for name, guard in guards.items():
        assert guard["metadata"]["name"] == name
        assert guard["spec"]["failurePolicy"] == "Fail"
        for validation in guard["spec"]["validations"]:
            assert validation["reason"] == "Forbidden"
            assert validation.get("message") or validation.get("messageExpression")


def test_a_guard_means_the_very_pods_that_the_webhook_is_sent() -> None:
    """A binding for each entry, with that entry's selectors, whatever sources are chosen."""
    for sources in (DEFAULT_SOURCES, ("mlrun", "polyaxon"), ALL):
        entries = webhooks(sources, only_namespaces=["research"])
        marks = [mark for source in select_sources(sources) for mark in source.marks]
        for policy, *bindings in (
            stamp_guard(entries, deny=False),
            capacity_guard(entries, marks),
            node_name_guard(entries),
        ):
            assert len({each["metadata"]["name"] for each in bindings}) == len(entries)
            for entry, binding in zip(entries, bindings, strict=True):
                assert binding["spec"]["policyName"] == policy["metadata"]["name"]
                selected = binding["spec"]["matchResources"]
                for selector in ("namespaceSelector", "objectSelector"):
                    assert selected[selector] == entry[selector]


def test_warning_and_denying_differ_only_while_the_webhook_is_disabled() -> None:
    """One can be tried before the other. The guard that denies admits pods then, by a parameter."""
    warned, denied = (stamp_guard(webhooks(), deny=deny) for deny in (False, True))
    own = {"paramKind", "matchConditions"}
    assert own <= denied[0]["spec"].keys()
    assert warned[0]["spec"] == {
        key: value for key, value in denied[0]["spec"].items() if key not in own
    }
    assert {tuple(each["spec"]["validationActions"]) for each in warned[1:]} == {("Warn", "Audit")}
    assert {tuple(each["spec"]["validationActions"]) for each in denied[1:]} == {("Deny",)}


def test_the_guards_are_for_sources_and_namespaces_of_one_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the webhook was installed."""
    text = printed(monkeypatch, *("stamp", "--source", "mlrun", "--only-namespace", "research"))
    _, binding = load_all_yaml(text)
    assert binding["metadata"]["name"] == "fairlead-stamp-mlrun-0"
    selected = binding["spec"]["matchResources"]
    assert {"key": "mlrun/class", "operator": "Exists"} in selected["objectSelector"][
        "matchExpressions"
    ]
    assert selected["namespaceSelector"]["matchExpressions"][-1]["values"] == ["research"]
    text = printed(
        monkeypatch,
        *("tolerations", "--exempt", "a:queue"),
    )
    policy = next(iter(load_all_yaml(text)))
    (condition,) = policy["spec"]["matchConditions"]
    assert '"a:queue"' in condition["expression"]
