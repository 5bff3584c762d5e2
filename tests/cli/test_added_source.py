"""A made-up system, added by one file: webhook, install, guide. golden/sessions/ has the rest."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.fast_yaml import load_all_yaml
from webhook.cli import fairlead
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.evaluation.templates import queued_templates
from webhook.identity import identify
from webhook.interception import webhooks
from webhook.policy.load import load

ROOT = Path(__file__).parents[2]
SOURCE = """\
apiVersion: fairlead.dev/v1alpha1
kind: RunSource
metadata: {name: acme}
spec:
  system: Acme training
  identity:
    precedence: 650
    marks: [{label: acme.example.com/job}]
    run: [{label: acme.example.com/job}]
    framework: [{always: pytorch}]
    role: [{label: acme.example.com/part, words: {master: [boss], worker: [hand]}}]
    index: [{label: acme.example.com/number}]
  kinds:
  - group: acme.example.com
    kind: Training
    resource: trainings
    notRead: [spec.overrides]
    pods:
    - part: boss
      template: spec.template
      adds:
      - labels: {acme.example.com/job: "{name}", acme.example.com/part: boss}
    - part: hand
      count: {from: [spec.hands]}
      build:
        template: spec.template
        add: {nodeSelector: [spec.handSelector]}
      adds:
      - labels:
          acme.example.com/job: "{name}"
          acme.example.com/part: hand
          acme.example.com/number: "{index}"
"""
POLICY = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: hands}
spec:
  match: {roles: [worker], frameworks: [pytorch]}
  overrides: {nodeSelector: {pool: hands}}
"""
TRAINING = """\
apiVersion: acme.example.com/v1
kind: Training
metadata: {name: mnist, namespace: research}
spec:
  hands: 3
  handSelector: {disk: ssd}
  template: {spec: {containers: [{name: main, image: i}]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of policies with the source, and an object of its kind beside it."""
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "acme.yaml").write_text(SOURCE)
    (policies / "hands.yaml").write_text(POLICY)
    (tmp_path / "training.yaml").write_text(TRAINING)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(fairlead, list(map(str, arguments)))


def test_sources_lists_it_in_its_place(folder: Path) -> None:
    """By precedence: below JobSet, above notebooks."""
    result = run("policy", "sources", "--policies", folder / "policies", "-o", "json")
    names = [row["name"] for row in json.loads(result.stdout)["sources"]]
    at = names.index("acme")
    assert names[at + 1] == "kubeflow-notebooks"
    assert "acme" not in run("policy", "sources").stdout


def test_the_webhook_places_its_pods_and_warns_of_its_workloads() -> None:
    """By the set that it serves; a set without the source knows neither."""
    policies = load({"a.yaml": SOURCE.encode(), "b.yaml": POLICY.encode()}).policies
    labels = {"acme.example.com/job": "mnist", "acme.example.com/part": "hand"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}
    arrival = Arrival(pod, "research", {})
    decision = decide(arrival, policies, Cluster())
    assert (decision.result, decision.identity and decision.identity.source) == ("placed", "acme")
    alone = load({"b.yaml": POLICY.encode()}).policies
    assert decide(arrival, alone, Cluster()).result == "not-a-run"
    (training,) = load_all_yaml(TRAINING)
    assert [each.part for each in queued_templates(training, policies.sources)] == ["boss", "hand"]
    # Without the source, its template is found by shape only.
    assert [each.part for each in queued_templates(training)] != ["boss", "hand"]
    assert policies.hash != alone.hash


def test_install_intercepts_its_pods_and_workloads(folder: Path) -> None:
    """From a file, which the webhook's ConfigMap then has; or by name, of a folder with it."""
    files = ("generate", "manifests", "-o", "json", "--policies-from-files")
    by_file = run(*files, "--source", folder / "policies" / "acme.yaml")
    by_name = run(*files, "--policies", folder / "policies", "--source", "acme")
    assert (by_file.exit_code, by_name.exit_code) == (0, 0), by_file.output + by_name.output
    for result in (by_file, by_name):
        objects = json.loads(result.stdout)
        listed = objects["items"] if isinstance(objects, dict) else objects
        by_kind: dict[str, Any] = {each["kind"]: each for each in listed}
        entries = by_kind["MutatingWebhookConfiguration"]["webhooks"]
        (entry,) = [each for each in entries if each["name"] == "acme-0.fairlead.dev"]
        assert {"key": "acme.example.com/job", "operator": "Exists"} in (
            entry["objectSelector"]["matchExpressions"]
        )
        (*_, workloads) = by_kind["ValidatingWebhookConfiguration"]["webhooks"]
        assert any(rule["resources"] == ["trainings"] for rule in workloads["rules"])
        maps = [each for each in listed if each["kind"] == "ConfigMap"]
        assert any("Acme training" in text for each in maps for text in each["data"].values())


def test_install_creates_a_source_as_an_object(folder: Path) -> None:
    """Where policies are objects; of a file, or of the folder of policies."""
    by_file = run("generate", "manifests", "--source", folder / "policies" / "acme.yaml")
    by_name = run("generate", "manifests", "--policies", folder / "policies", "--source", "acme")
    for result in (by_file, by_name):
        found = [each for each in load_all_yaml(result.stdout) if each]
        kinds = [each["kind"] for each in found]
        (source,) = [each for each in found if each["kind"] == "RunSource"]
        assert source["spec"]["system"] == "Acme training"
        assert kinds.index("RunSource") < kinds.index("Deployment")
        assert "acme-0.fairlead.dev" in result.stdout
        assert "trainings" in result.stdout


def test_entries_are_made_of_the_table_that_is_given() -> None:
    """The name in no table is an error as ever."""
    table = load({"a.yaml": SOURCE.encode()}).policies.sources
    assert [each["name"] for each in webhooks(["acme"], table=table)] == ["acme-0.fairlead.dev"]
    with pytest.raises(ValueError, match="acme"):
        webhooks(["acme"])


def test_labels_of_an_added_system_are_read_beside_those_that_ship() -> None:
    """A pod of both is the one's with the higher precedence."""
    table = load({"a.yaml": SOURCE.encode()}).policies.sources
    labels = {"acme.example.com/job": "a", "jobset.sigs.k8s.io/jobset-name": "b"}
    found = identify(labels, {}, {}, table)
    assert found is not None
    assert (found.source, found.run, found.framework) == ("jobset", "b", "pytorch")


def test_the_guide_shows_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files, and its preview to the letter; what it installs is printed."""
    guide = (ROOT / "docs" / "guides" / "add-a-system.md").read_text()
    for block in re.findall(r"```ya?ml\n(.*?)```", guide, re.DOTALL):
        file = tmp_path / block.split("\n")[0].removeprefix("# ")
        file.parent.mkdir(exist_ok=True)
        file.write_text(block)
    monkeypatch.chdir(tmp_path)
    (preview, shown), (install, nothing) = re.findall(
        r"```console\n\$ fairlead ([^\n]*)\n(.*?)```", guide, re.DOTALL
    )
    assert run(*preview.split()).output.rstrip() == shown.rstrip()
    assert nothing == ""
    assert run("generate", "manifests", *install.split()[1:]).exit_code == 0
    assert run("check", "mine/").exit_code == 0
