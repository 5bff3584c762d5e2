"""Policies that ship as the API server stores them, and what kubectl says of a wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.rule_cases import a_policy, path_of
from tests.fast_yaml import load_all_yaml
from tests.wording import mentions
from webhook import names
from webhook.policy.crd.definitions import RESOURCES
from webhook.policy.policy_documents import KNOWN
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.server.folder import is_test_file

pytest_plugins = ["tests.cluster.policy_fixtures"]

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
SHIPPED = sorted(
    path for path in (ROOT / "policies").rglob("*.yaml") if not is_test_file(path.name)
)
DEFAULTS: Json = {"enforcement": "Enforce", "priority": 0}


@pytest.fixture
def bare(policy_api: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a cluster without policies; those that a test makes go with it."""
    yield cluster_kubectl
    for kind in RESOURCES:
        policy_api.api.call("DELETE", path_of(kind))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_file_that_ships_is_read_back_unchanged(bare: Kubectl, path: Path) -> None:
    """What the file says and nothing else, but for what holds where it says nothing."""
    written = list(load_all_yaml(path.read_text()))
    bare("apply", "--validate=strict", "-f", str(path))

    for document in written:
        stored = bare.json("get", document["kind"], document["metadata"]["name"])
        filled = DEFAULTS if document["kind"] == names.POLICY_KIND else {}
        assert stored["spec"] == {**filled, **document["spec"]}
        model = KNOWN[document["kind"]]
        assert model.model_validate(stored).spec == model.model_validate(document).spec
    assert bare("diff", "-f", str(path)) == ""


def test_kubectl_says_the_rule_and_the_cure(bare: Kubectl) -> None:
    """What a person sees who applies a wrong file: field, value, message."""
    wrong = a_policy(overrides={"labels": {"fairlead.dev/run": "x"}})

    done = bare.run("apply", "-f", "-", stdin=json.dumps(wrong))
    assert done.returncode == 1
    head = 'The PlacementPolicy "mine" is invalid: spec.overrides.labels: Invalid value: '
    said = done.stderr.partition(head)[2]
    mentions(said, "labels under fairlead.dev/", "remove them")
