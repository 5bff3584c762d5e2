"""What a policy set becomes: two policies with their bindings, and nothing that varies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exported.sets import SETS, text
from webhook import names
from webhook.exported.documents import NAME, documents
from webhook.exported.positioned_settings import placed_of
from webhook.interception import webhooks
from webhook.server.folder import read_folder

Json = dict[str, Any]
POLICIES = Path(__file__).parents[2] / "policies"
# Has what no exported policy can express, and each of it is refused.
REFUSED = {POLICIES / "examples" / "one-platform"}
FOLDERS = sorted(
    {path.parent for path in POLICIES.rglob("*.test.yaml")} - REFUSED - {POLICIES / "capacity"}
)
PROVIDERS = sorted(p for p in (POLICIES / "capacity").glob("*.yaml") if "test" not in p.name)


def exported(content: str) -> list[Json]:
    """The documents of these policies, for the pods that a webhook is sent by default."""
    placed, _ = placed_of({"p.yaml": content.encode()})
    return documents(placed, webhooks())


def variables(document: Json) -> dict[str, str]:
    """A policy's variables by name."""
    return {each["name"]: each["expression"] for each in document["spec"]["variables"]}


def test_a_set_is_one_mutating_and_one_validating_policy() -> None:
    """Several mutating ones would be applied in no order that could be chosen."""
    kinds = [document["kind"] for document in exported(SETS[0])]
    assert kinds == [
        "MutatingAdmissionPolicy",
        *["MutatingAdmissionPolicyBinding"] * 2,
        "ValidatingAdmissionPolicy",
        *["ValidatingAdmissionPolicyBinding"] * 2,
    ]


def test_bindings_take_the_webhooks_own_selectors() -> None:
    """So the very pods that it would be sent are placed, and nobody else's."""
    bindings = [d for d in exported(SETS[0]) if d["kind"] == "MutatingAdmissionPolicyBinding"]
    for bound, entry in zip(bindings, webhooks(), strict=True):
        assert bound["spec"]["policyName"] == NAME
        assert bound["spec"]["matchResources"]["objectSelector"] == entry["objectSelector"]
        assert bound["spec"]["matchResources"]["namespaceSelector"] == entry["namespaceSelector"]


def test_policies_are_variables_in_the_order_of_their_priority() -> None:
    """Which of them wins a key is said by position."""
    label = {"labels": {"team": "x"}}
    low = {"match": {"roles": ["ps"]}, "priority": 1, "overrides": label}
    high = {"match": {"roles": ["worker"]}, "priority": 2, "overrides": label}
    found = variables(exported(text(low, high))[0])
    assert found["p0"] == '!(variables.daemon_set) && variables.role in ["worker"]'
    assert found["p1"] == '!(variables.daemon_set) && variables.role in ["ps"]'
    assert "variables.p1 && !variables.p0" in found["set_labels"]


def test_only_variables_that_are_read_are_written() -> None:
    """A set that asks for no role, and says nothing of nodes, works none of it out."""
    found = exported(text({"overrides": {"labels": {"team": "x"}}}))
    known = {"own_labels", "daemon_set", "p0", "set_labels", "set_annotations"}
    assert set(variables(found[0])) == known
    assert set(variables(found[3])) == {"own_annotations", "daemon_set"}


def test_variables_stand_before_those_that_read_them() -> None:
    """The API server compiles them in their order."""
    for content in SETS:
        for document in (exported(content)[0], exported(content)[3]):
            known: list[str] = []
            for name, expression in variables(document).items():
                for other in variables(document):
                    if other not in known:
                        assert f"variables.{other} " not in expression, (name, other)
                known.append(name)


def test_the_stamp_names_the_set_and_nothing_else() -> None:
    """It is a constant, always written: an author's own does not stay."""
    found = variables(exported(SETS[0])[0])["set_annotations"]
    placed, _ = placed_of({"p.yaml": SETS[0].encode()})
    stamp = json.dumps({"exported": True, "set": placed.set_hash[:16]}, separators=(",", ":"))
    assert f'"key": dyn({json.dumps(names.PLACEMENT)})' in found
    assert f'"value": dyn({json.dumps(stamp)})' in found


def test_policies_under_audit_are_left_out() -> None:
    """They change nothing, and are named to whoever exports."""
    audit: Json = {"enforcement": "Audit", "overrides": {"labels": {"never": "seen"}}}
    placed, audited = placed_of({"p.yaml": text(audit).encode()})
    assert audited == ["p0"]
    assert "never" not in json.dumps(documents(placed, webhooks()))


def test_the_order_of_documents_does_not_count() -> None:
    """The same policies give the same bytes."""
    parts = SETS[0].split("\n---\n")
    assert exported("\n---\n".join(reversed(parts))) == exported(SETS[0])


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda path: path.stem)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_folder_that_ships_can_be_exported(folder: Path, provider: Path) -> None:
    """Beside the classes of every provider; tests/agreement/ has them judged by the API server."""
    files = {**read_folder(folder), **read_folder(provider)}
    placed, _ = placed_of(files)
    found = documents(placed, webhooks())
    assert [document["metadata"]["name"] for document in found].count(NAME) == 2
