"""A made-up system, added by one file, is recognized by every command and by the webhook."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.fast_yaml import load_all_yaml
from tests.wording import mentions
from webhook.admission.arrival import Arrival, Cluster
from webhook.admission.engine import decide
from webhook.cli import fairlead
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
TEST = """\
apiVersion: fairlead.dev/v1alpha1
kind: PolicyTest
policies: [acme.yaml, hands.yaml]
tests:
- name: a hand goes to its pool
  pod: {labels: {acme.example.com/job: mnist, acme.example.com/part: hand}}
  expect: {policies: [hands]}
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


def test_check_takes_it(folder: Path) -> None:
    """Also alone."""
    assert run("check", folder / "policies").exit_code == 0
    assert run("check", folder / "policies" / "acme.yaml").exit_code == 0


def test_sources_lists_it_in_its_place(folder: Path) -> None:
    """By precedence: below JobSet, above notebooks."""
    result = run("sources", "--policies", folder / "policies", "-o", "json")
    names = [row["name"] for row in json.loads(result.stdout)]
    at = names.index("acme")
    assert names[at + 1] == "kubeflow-notebooks"
    assert "acme" not in run("sources").stdout


def test_mutate_and_explain_know_its_pods(folder: Path) -> None:
    """What a policy sets goes into the object's own fields."""
    given = ("-f", folder / "training.yaml", "--policies", folder / "policies")
    names = run("mutate", *given, "-o", "name")
    mentions(names.stdout, "boss", "unchanged", "hand × 3", "placed", "hands")
    (printed,) = load_all_yaml(run("mutate", *given, "-o", "yaml").stdout)
    assert printed["spec"]["handSelector"] == {"disk": "ssd", "pool": "hands"}
    told = run("explain", *given)
    mentions(told.stdout, "mnist", "pytorch", "worker")
    alone = run("explain", *given[:2], "--policies", folder / "policies" / "hands.yaml")
    mentions(alone.stdout, "not part of a run")


def test_a_field_that_it_does_not_cover_is_told(folder: Path) -> None:
    """As of any other system."""
    (folder / "training.yaml").write_text(TRAINING + "  overrides: {}\n")
    result = run("mutate", "-f", folder / "training.yaml", "--policies", folder / "policies")
    mentions(result.stderr, "Training/mnist", "spec.overrides", "not read")


@pytest.mark.parametrize("command", ["mutate", "explain"])
@pytest.mark.parametrize("count", ["'3'", "-1", "2.5", "[3]", "true"])
def test_a_number_of_pods_that_is_none_is_an_error(folder: Path, command: str, count: str) -> None:
    """With its place in the file; the other pods of the object are still shown."""
    (folder / "training.yaml").write_text(TRAINING.replace("hands: 3", f"hands: {count}"))
    given = ("-f", folder / "training.yaml", "--policies", folder / "policies")
    result = run(command, *given)

    assert result.exit_code == 1
    mentions(result.stderr, ": Training/mnist: spec.hands: is", "0 or more")
    mentions(result.stdout, "boss")
    assert "hand ×" not in result.stdout
    compared = run("diff", folder / "policies", folder / "policies", "--pods", given[1])
    assert compared.exit_code == 2
    mentions(compared.stderr, "spec.hands: is", "0 or more")


def test_policy_tests_know_its_pods(folder: Path) -> None:
    """Through the documents that the test names."""
    (folder / "policies" / "hands.test.yaml").write_text(TEST)
    result = run("test", folder / "policies")
    assert result.exit_code == 0, result.output


def test_diff_shows_what_adding_it_changes(folder: Path) -> None:
    """Pods that are of no run before are placed after."""
    before = folder / "before"
    before.mkdir()
    (before / "hands.yaml").write_text(POLICY)
    given = ("diff", before, folder / "policies", "--pods", folder / "training.yaml")
    result = run(*given)
    mentions(result.output, "3 placed differently", "hand × 3")
    assert run("diff", before, before, "--pods", folder / "training.yaml").exit_code == 0


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
    files = ("install", "--dry-run", "-o", "json", "--policies-from-files")
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
    by_file = run("install", "--dry-run", "--source", folder / "policies" / "acme.yaml")
    by_name = run("install", "--dry-run", "--policies", folder / "policies", "--source", "acme")
    for result in (by_file, by_name):
        found = [each for each in load_all_yaml(result.stdout) if each]
        kinds = [each["kind"] for each in found]
        (source,) = [each for each in found if each["kind"] == "RunSource"]
        assert source["spec"]["system"] == "Acme training"
        assert kinds.index("RunSource") < kinds.index("Deployment")
        assert "acme-0.fairlead.dev" in result.stdout
        assert "trainings" in result.stdout


def test_install_refuses_other_documents_as_sources(folder: Path) -> None:
    """They are no systems."""
    wrong = run("install", "--dry-run", "--source", folder / "policies" / "hands.yaml")
    mentions(wrong.output, "PlacementPolicy", "want documents RunSource only")


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
    assert run(*install.split(), "--dry-run").exit_code == 0
    assert run("check", "mine/").exit_code == 0
