"""`fairlead diff` on files: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.diff.repository import Repository
from tests.cli.files import NODES, POD, POLICIES, REJECTED, TF_JOB
from tests.policy_tests.writing import CLASS, policy
from tests.wording import Wording, line_with, mentions
from webhook.cli.diff import command, uncollected

PREVENTED = POLICIES.replace("Constrain", "Prevent")
NOWHERE = CLASS + policy("nowhere", "overrides: {nodeSelector: {pool: none}}")
ARM = POD.replace("name: mnist", "name: arm", 1).replace(
    "spec:\n", "spec:\n  nodeSelector: {arch: arm64}\n"
)
RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: mnist, namespace: research}
spec:
  kind: experiment
  framework: pytorch
  template: {spec: {containers: [{name: main, image: train}]}}
  replicas:
    master: {}
    worker: {count: 2}
"""
AGENTS = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  template:
    metadata: {labels: {fairlead.dev/run: agent}}
    spec: {tolerations: [{operator: Exists}], containers: [{name: main, image: i}]}
"""
SELECTING = policy(
    "by-tier", "match: {namespaceSelector: {matchLabels: {tier: a}}}, defaults: {schedulerName: s}"
)


class Folder:
    """A working directory with files, and the command."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("old/p.yaml", POLICIES)
        self.write("new/p.yaml", PREVENTED)
        self.write("nodes.yaml", NODES)

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def diff(self, *arguments: str, stdin: str | None = None) -> Result:
        """Call the command."""
        return CliRunner().invoke(command, arguments, input=stdin)

    def on(self, objects: str, *options: str, old: str = "old", new: str = "new") -> Result:
        """The difference between the folders for these objects."""
        self.write("objects.yaml", objects)
        return self.diff(old, new, "--pods", "objects.yaml", *options)

    def told(self, objects: str, *options: str, old: str = "old", new: str = "new") -> Any:
        """The same, as JSON."""
        return json.loads(self.on(objects, "-o", "json", *options, old=old, new=new).stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A working directory."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def test_what_objects_are_called_begins_no_line(folder: Folder) -> None:
    """Whoever opens a pull request writes its objects, and a line may be a command to its CI."""
    folder.write("old/p.yaml", SELECTING)
    folder.write("new/p.yaml", f"{SELECTING}---\n{REJECTED}")
    odd = ARM.replace("namespace: research", 'namespace: "n\\n::error::x\\e[31m"')
    assert odd != ARM
    result = folder.on(odd)
    line_with(result.stdout, "1 pod in n ::error::x\\x1b[31m: Pod/arm")
    line_with(result.stderr, "labels", "namespace n ::error::x\\x1b[31m ", "by-tier")
    lines = result.output.splitlines()
    assert not [line for line in lines if line.startswith("::") or "\x1b" in line]


def test_numbers_are_of_any_size(folder: Folder) -> None:
    """They are a file's: a sum is told, and what the API server would refuse is named."""
    job = TF_JOB.replace("replicas: 3", f"replicas: {10**30}")
    assert job != TF_JOB
    assert folder.told(job)["pods"]["total"] == 10**30
    run = RUN.replace(
        "  kind: experiment", f"  kind: experiment\n  activeDeadlineSeconds: {10**30}"
    )
    result = folder.on(run)
    assert result.exit_code == 2
    mentions(result.stderr, f"spec.activeDeadlineSeconds: {10**30} ", "too large")


def test_the_answer_reads_at_once(folder: Folder, wording: Wording) -> None:
    """What is compared, the sum, the sums by namespace and policy, and every kind of change."""
    folder.write("new/more.yaml", REJECTED)
    result = folder.on(f"{POD}---\n{ARM}---\n{TF_JOB}", "--nodes", "nodes.yaml")
    assert (result.exit_code, result.stderr) == (1, "")
    heads, total, table, rejections, nodeless = result.stdout.split("\n\n")
    old, new = heads.splitlines()
    mentions(old, "OLD old", "1 policy", "set ")
    mentions(new, "NEW new", "2 policies", "set ")
    mentions(total, "5 pods", "1 newly rejected", "4 newly without a node")
    assert [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()] == [
        ["namespace", "policy", "newly rejected", "newly without a node"],
        ["default", "amd64-only", "0", "3"],
        ["default", "workers-on-spot", "0", "3"],
        ["research", "amd64-only", "1", "1"],
        ["research", "workers-on-spot", "0", "1"],
    ]
    mentions(rejections, "rejected: 1 pod", "research: Pod/arm", "policy amd64-only")
    mentions(rejections, "requirements.nodeSelector[arch]", "'amd64'", "'arm64'")
    _, *changes = re.split(r"\n(?=  \d)", nodeless)
    for change, subject in zip(
        changes,
        ("3 pods in default: TFJob/mnist worker × 3", "1 pod in research: Pod/mnist"),
        strict=True,
    ):
        mentions(change, subject, "+ amd64-only, requirements nodeSelector[arch]: 'amd64'")
        mentions(change, "~ workers-on-spot, overrides capacity[spot]: Prevent")
        mentions(change, "before: Constrain", "0 of 3 nodes", "2 ", "arch=amd64 on 3")
    hashes = dict.fromkeys(line.rpartition("set ")[2] for line in (old, new))
    assert len(hashes) == 2
    wording(result.stdout, dict(zip(hashes, ("HASH-1", "HASH-2"), strict=True)))


def test_a_comment_on_a_pull_request_says_the_same(folder: Folder, wording: Wording) -> None:
    """In Markdown, with what others may have written in code."""
    folder.write("new/more.yaml", REJECTED)
    result = folder.on(f"{POD}---\n{ARM}", "--nodes", "nodes.yaml", "-o", "markdown")
    title, total, table, first, rejection, second, change = result.stdout.split("\n\n")
    assert title.startswith("### ")
    mentions(title, "`old`", "`new`")
    mentions(total, "**2 pods", "1 newly rejected", "1 newly without a node")
    assert table.splitlines() == [
        "| namespace | policy | newly rejected | newly without a node |",
        "|---|---|--:|--:|",
        "| `research` | `amd64-only` | 1 | 1 |",
        "| `research` | `workers-on-spot` | 0 | 1 |",
    ]
    mentions(first, "**Newly rejected**", "1 pod in `research`: `Pod/arm`")
    mentions(rejection, "```diff - policy amd64-only", "nodeSelector[arch]", "'arm64'")
    mentions(second, "**Newly without a node**", "1 pod in `research`: `Pod/mnist`")
    assert [line[:2] for line in change.splitlines()] == ["``", "+ ", "! ", "# ", "``"]
    mentions(change, "+ amd64-only, requirements: nodeSelector[arch]: 'amd64'")
    mentions(change, "! workers-on-spot, overrides: capacity[spot]: Prevent", "before: Constrain")
    mentions(change, "# 0 of 3 nodes", "arch=amd64 on 3")
    wording(result.stdout)


def test_programs_get_every_pod(folder: Folder) -> None:
    """With its place, what both sets make of it, and by which policy."""
    found = folder.told(TF_JOB, "--nodes", "nodes.yaml")
    assert (found["old"]["source"], found["new"]["source"], found["nodes"]) == ("old", "new", 3)
    assert found["pods"] == {
        "total": 3,
        "live": 0,
        "ofNoRun": 0,
        "rejectedBeforeAndAfter": 0,
        "differing": 3,
        "withoutNode": 0,
        "rejected": 0,
        "unplaceable": 0,
        "moved": 3,
        "admitted": 0,
        "placeable": 0,
    }
    (change,) = found["changes"]
    assert (change["change"], change["policies"]) == ("moved", ["workers-on-spot"])
    assert (change["old"]["nodes"], change["new"]["nodes"]) == (2, 1)
    assert change["objects"] == [
        {
            "object": "TFJob/mnist",
            "pods": "worker × 3",
            "indexes": [0, 1, 2],
            "count": 3,
            "live": False,
            "place": "objects.yaml:8:7",
        }
    ]


def test_the_same_policies_make_no_difference(folder: Folder, wording: Wording) -> None:
    """Exit code 0, and a plain word."""
    result = folder.on(POD, new="old")
    assert result.exit_code == 0
    total = result.stdout.splitlines()[-1]
    mentions(total, "1 pod", "no change")
    wording(total)


def test_runs_are_compared_replica_by_replica(folder: Folder) -> None:
    """As the controller will make them."""
    found = folder.told(RUN)
    (change,) = found["changes"]
    assert found["pods"]["total"] == 3
    assert change["objects"][0]["object"] == "Run/mnist"
    assert (change["namespace"], change["objects"][0]["pods"]) == ("research", "worker × 2")


def test_a_delegated_run_is_compared_as_the_object_that_it_becomes(folder: Folder) -> None:
    """With the pods that the operator creates."""
    run = RUN.replace("  kind: experiment", "  backend: kubeflow")
    found = folder.told(run)
    (change,) = found["changes"]
    assert found["pods"]["total"] == 3
    assert change["objects"][0]["object"] == "PyTorchJob/mnist"
    assert (change["namespace"], change["objects"][0]["pods"]) == ("research", "worker × 2")


def test_a_large_run_is_decided_on_up_to_its_thousandth_replica(folder: Folder) -> None:
    """The others are taken to be like it, and counted."""
    found = folder.told(RUN.replace("count: 2", "count: 1500"))
    (change,) = found["changes"]
    assert (change["count"], found["pods"]["total"]) == (1500, 1501)
    assert change["objects"][0]["pods"] == "worker × 1500"


def test_an_invalid_run_is_reported_with_its_place(folder: Folder) -> None:
    """Exit code 2: nothing was compared."""
    result = folder.on(RUN.replace("kind: experiment", "kind: nothing"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "objects.yaml:1:1: Run/mnist: spec.kind" in result.stderr


@pytest.mark.parametrize(
    ("fail_on", "codes"),
    [
        ("changed", (1, 1, 1, 1)),
        ("unplaceable", (0, 1, 1, 0)),
        ("rejected", (0, 0, 1, 0)),
        ("never", (0, 0, 0, 0)),
    ],
)
def test_the_exit_code_is_what_was_asked_for(
    folder: Folder, fail_on: str, codes: tuple[int, ...]
) -> None:
    """Of pods that are placed differently, left without a node, rejected, and admitted again."""
    folder.write("nowhere/p.yaml", NOWHERE)
    folder.write("strict/p.yaml", CLASS + REJECTED)
    folder.write("empty/p.yaml", CLASS)
    cases = [(POD, "old", "new"), (POD, "old", "nowhere"), (ARM, "empty", "strict")]
    cases.append((ARM, "strict", "empty"))
    found = []
    nodes = NODES.replace("pool: steady}", "pool: steady, arch: arm64}")
    folder.write("nodes.yaml", nodes)
    for objects, old, new in cases:
        options = ("--fail-on", fail_on, "--nodes", "nodes.yaml")
        found.append(folder.on(objects, *options, old=old, new=new).exit_code)
    assert tuple(found) == codes


def test_nodes_that_are_made_on_demand_open_the_gate(folder: Folder, wording: Wording) -> None:
    """Their class is named beside the pods."""
    made = CLASS.replace("{nodes:", "{autoscaled: true, nodes:").replace("pool: spot", "pool: new")
    folder.write("old/p.yaml", made)
    folder.write(
        "new/p.yaml", made + policy("p", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    )
    result = folder.on(POD, "--fail-on", "unplaceable", "--nodes", "nodes.yaml")
    assert result.exit_code == 0
    wording(line_with(result.stdout, "0 of 3 nodes", "1 did before", "class spot", "on demand"))
    found = folder.told(POD, "--nodes", "nodes.yaml")
    assert found["changes"][0]["new"]["onDemand"] == ["spot"]


def test_a_class_that_makes_no_more_nodes_is_reported(folder: Folder, wording: Wording) -> None:
    """The pod is placed as before, and waits."""
    constrain = policy("p", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    gone = CLASS.replace("pool: spot", "pool: new")
    folder.write("old/p.yaml", gone.replace("{nodes:", "{autoscaled: true, nodes:") + constrain)
    folder.write("new/p.yaml", gone + constrain)
    result = folder.on(POD, "--fail-on", "unplaceable", "--nodes", "nodes.yaml")
    assert result.exit_code == 1
    told = line_with(result.stdout, "0 of 3 nodes", "class spot", "made them on demand before")
    wording(told)


def test_a_gate_on_nodes_wants_nodes(folder: Folder, wording: Wording) -> None:
    """Without them it would always be open."""
    result = folder.on(POD, "--fail-on", "unplaceable")
    assert result.exit_code == 2
    mentions(result.stderr, "--fail-on unplaceable", "--nodes")
    wording(result.stderr.partition("Error: ")[2])
    # The word is taken as elsewhere; then a cluster is asked, and that there is none is told.
    asked = ("--nodes", "cluster", "--kubeconfig", "absent")
    result = folder.on(POD, "--fail-on", "unplaceable", *asked)
    assert result.exit_code == 2
    mentions(result.stderr, "absent", "no such kubeconfig")


def test_a_revision_is_compared_with_the_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a CI job does, and an author before."""
    repository = Repository(tmp_path / "repository")
    monkeypatch.chdir(repository.folder)
    repository.write("policies/p.yaml", POLICIES)
    repository.write("pod.yaml", POD)
    repository.commit()
    repository.write("policies/p.yaml", PREVENTED)
    runner = CliRunner()
    arguments = ["main:policies", "policies", "--pods", "pod.yaml"]
    result = runner.invoke(command, arguments)
    assert result.exit_code == 1
    assert "capacity[spot]: Prevent (before: Constrain)" in result.stdout
    repository.commit()
    assert runner.invoke(command, arguments).exit_code == 0
    assert runner.invoke(command, ["main~1:policies", *arguments[1:]]).exit_code == 1


def test_no_policies_at_all_is_a_set_too(folder: Folder) -> None:
    """What policies do is what they change of nothing."""
    result = folder.on(POD, old="/dev/null")
    assert result.exit_code == 1
    assert "+  workers-on-spot, overrides  capacity[spot]: Prevent" in result.stdout


def test_all_errors_are_reported_at_once(folder: Folder) -> None:
    """Of both sets, with file and line; exit code 2, so that no job takes it for a difference."""
    folder.write("old/p.yaml", POLICIES.replace("roles: [worker]", "roles: [work]"))
    folder.write("new/p.yaml", POLICIES.replace("Constrain", "Constrained"))
    result = folder.on(POD)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "old/p.yaml:" in result.stderr
    assert "new/p.yaml:" in result.stderr


@pytest.mark.parametrize(
    ("old", "facts"),
    [("gone", ["gone", "no such file"]), ("empty", ["empty", "/dev/null"])],
    ids=["gone", "empty"],
)
def test_a_folder_without_policies_is_an_error(
    folder: Folder, old: str, facts: list[str], wording: Wording
) -> None:
    """A slip of the pen would otherwise be a difference of everything."""
    (folder.path / "empty").mkdir()
    result = folder.on(POD, old=old)
    assert result.exit_code == 2
    mentions(result.stderr, *facts)
    wording(result.stderr.rpartition("Error: ")[2])


def test_objects_without_pods_are_an_error(folder: Folder, wording: Wording) -> None:
    """A gate that looked at nothing would be open."""
    result = folder.on("{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}")
    assert result.exit_code == 2
    mentions(result.stderr, "objects.yaml", "1 ConfigMap")
    wording(result.stderr)


def test_a_malformed_pod_is_reported_with_its_place(folder: Folder) -> None:
    """And the cure."""
    result = folder.on(POD.replace("spec:\n", "spec:\n  nodeSelector: {a: 1}\n"))
    assert result.exit_code == 2
    mentions(result.stderr, "objects.yaml:8:21: Pod/mnist: spec.nodeSelector.a: ", "string")


def test_pods_of_no_run_are_counted_apart(folder: Folder) -> None:
    """No policy is for them."""
    plain = POD.replace(
        "labels: {fairlead.dev/run: mnist, fairlead.dev/role: worker}", "labels: {}"
    )
    found = folder.told(f"{POD}---\n{plain}")
    assert (found["pods"]["total"], found["pods"]["ofNoRun"]) == (1, 1)


def test_what_is_not_known_stands_in_every_form_of_the_answer(folder: Folder) -> None:
    """A comment on a pull request has no stderr beside it."""
    folder.write("new/p.yaml", SELECTING)
    spark = (
        "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {name: s}\n"
    )
    objects = f"{POD}---\n{spark}"
    for told in (
        " ".join(folder.told(objects)["notes"]),
        folder.on(objects, "-o", "markdown").stdout,
    ):
        mentions(told, "namespace research", "by-tier", "SparkApplication makes pods")


def test_standard_input_may_have_the_pods(folder: Folder) -> None:
    """As `kubectl get -o yaml` prints them."""
    assert folder.diff("old", "new", "--pods", "-", stdin=POD).exit_code == 1


def test_namespaces_may_be_in_the_same_files_as_pods(folder: Folder, wording: Wording) -> None:
    """Without them it is said that their labels are not known."""
    folder.write("new/p.yaml", POLICIES + SELECTING)
    result = folder.on(POD)
    assert result.exit_code == 0
    mentions(result.stderr, "labels", "namespace research", "by-tier", "--namespaces")
    wording(result.stderr)
    space = "{apiVersion: v1, kind: Namespace, metadata: {name: research, labels: {tier: a}}}"
    result = folder.on(f"{POD}---\n{space}")
    assert (result.exit_code, result.stderr) == (1, "")


def test_what_others_wrote_steers_no_terminal_and_no_markdown(folder: Folder) -> None:
    """A pod's name and its words are shown, and nothing more."""
    folder.write("new/more.yaml", REJECTED)
    evil = ARM.replace("arm64", '"a`]()<b>\\e[2J@all"')
    for output in ("text", "markdown"):
        shown = folder.on(evil, "-o", output).stdout
        assert "\x1b" not in shown
        assert "@all" in shown
    block = shown.partition("```diff\n")[2].partition("\n```")[0]
    assert "@all" in block


def test_an_exception_counts_as_it_is_in_force_now(folder: Folder) -> None:
    """Whom it would let pass is told before the merge; one that has ended is no difference."""
    text = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementException\nmetadata: {name: anna}\n"
        'spec: {policies: [amd64-only], match: {namespaces: [research]}, until: "%s", reason: x}\n'
    )
    folder.write("strict/p.yaml", REJECTED)
    for year, count in (("2099", 1), ("2001", 0)):
        folder.write("excepted/p.yaml", REJECTED + text % f"{year}-01-01T00:00:00Z")
        told = folder.told(ARM, old="strict", new="excepted")
        assert len(told["changes"]) == count


def test_a_daemon_sets_pods_are_judged_by_their_nodes(folder: Folder, wording: Wording) -> None:
    """As the webhook does: one for each node of its own; without nodes that is said."""
    folder.write("old/p.yaml", CLASS)
    folder.write("new/p.yaml", policy("strict", "requirements: {nodeSelector: {pool: spot}}"))
    found = folder.told(AGENTS, "--nodes", "nodes.yaml")
    assert (found["pods"]["total"], found["pods"]["rejected"]) == (3, 1)
    (change,) = [each for each in found["changes"] if each["change"] == "rejected"]
    mentions(change["new"]["reason"], "strict", "nodeSelector[pool]", "steady-1")
    mentions(str(change), "DaemonSet/agent", "on steady-1")
    spot_only = AGENTS.replace("spec: {tol", "spec: {nodeSelector: {pool: spot}, tol")
    assert folder.on(spot_only, "--nodes", "nodes.yaml").exit_code == 0
    none = folder.told(AGENTS.replace("fairlead.dev/run", "app"), "--nodes", "nodes.yaml")
    assert (none["pods"]["total"], none["pods"]["ofNoRun"]) == (0, 1)
    unknown = folder.on(AGENTS, "--fail-on", "never")
    mentions(unknown.stderr, "DaemonSet/agent", "--nodes")
    wording(unknown.stderr.splitlines()[-1])


def test_the_collector_rests_within_and_works_after() -> None:
    """Also if what is within fails."""
    assert gc.isenabled()
    with pytest.raises(KeyError), uncollected():
        _fail(gc.isenabled())
    assert gc.isenabled()


def _fail(collecting: bool) -> None:
    assert not collecting
    raise KeyError


def test_who_found_it_off_leaves_it_off() -> None:
    """One within another does not end the other's rest."""
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
