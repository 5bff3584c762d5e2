"""`fairlead mutate` shows what pods would become, in each of its forms."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from tests.cli.files import POD, POLICIES, REJECTED, TF_JOB, WEB, Files
from tests.fast_yaml import load_all_yaml, load_yaml
from tests.policy_tests.writing import policy
from tests.wording import Wording, line_with, mentions
from webhook.cli.decisions import decisions
from webhook.cli.mutate import command
from webhook.cli.mutate_text import show
from webhook.cli.offline import read_offline, read_policies

ARM = POD.replace("spec:\n", "spec:\n  nodeSelector: {arch: arm64}\n")
FIRST = policy("first", "match: {replicaIndexes: [0]}, defaults: {nodeSelector: {pool: a}}")

STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: research}
spec:
  selector: {matchLabels: {app: db}}
  serviceName: db
  template:
    metadata: {labels: {app: db, fairlead.dev/run: db}}
    spec: {containers: [{name: main, image: i, volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]
"""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder with policies and nodes."""
    return Files(tmp_path, command)


def test_a_diff_shows_what_changes(files: Files, wording: Wording) -> None:
    """Under a line that says what becomes of the pod; exit code 0."""
    result = files.on(POD)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    mentions(lines[0], "Pod/mnist in research", "placed", "workers-on-spot")
    assert lines[1:3] == ["--- Pod/mnist", "+++ Pod/mnist"]
    wording(lines[0])
    assert "+  - key: spot" in lines
    assert not [line for line in lines[3:] if line.startswith("-")]


@pytest.mark.parametrize("output", ["diff", "yaml", "json", "patch", "name"])
def test_the_templates_of_a_run_are_checked(files: Files, output: str) -> None:
    """The API server takes any Run, and refuses its pods."""
    resources = '{requests: {cpu: "4"}, limits: {cpu: "2"}}'
    container = f"{{name: main, image: x, resources: {resources}}}"
    head = "apiVersion: fairlead.dev/v1alpha1\nkind: Run\nmetadata: {name: bad}\n"
    run = f"{head}spec: {{template: {{spec: {{containers: [{container}]}}}}}}\n"
    result = files.on(run, "-o", output)
    assert result.exit_code == 1
    mentions(str(result.exception), "Run/bad", "requests.cpu", "above its limit")


def test_a_file_without_policies_is_no_set(files: Files) -> None:
    """It may have been cut off; whoever means it says so."""
    result = files.on(POD, policies=["# nothing\n---\n"])
    assert result.exit_code == 1
    mentions(str(result.exception), "policies.yaml", "empty", "/dev/null")
    objects = files.folder / "objects.yaml"
    assert files.run("-f", objects, "--policies", "/dev/null").exit_code == 0


def test_a_diff_of_a_workload_is_of_its_template(files: Files) -> None:
    """Without the labels that its controller adds to the pods."""
    result = files.on(TF_JOB)
    assert "spec.tfReplicaSpecs.Worker.template" in line_with(result.stdout, "--- TFJob/mnist")
    assert "training.kubeflow.org" not in result.stdout


def test_pods_without_a_run_are_reported_with_the_cure(files: Files, wording: Wording) -> None:
    """Most often the label is on the workload itself, where no pod gets it from."""
    web = files.on(WEB).stdout
    subject, cure = web.splitlines()
    mentions(subject, "Deployment/web in default", "not part of a run")
    mentions(cure, "fairlead.dev/run", "Deployment", "spec.template.metadata.labels")
    wording(web)
    bare = files.on(POD.replace("labels:", "annotations:")).stdout
    mentions(bare, "fairlead.dev/run: NAME", " metadata.labels")
    wording(bare)


def test_a_rejection_is_reported_on_stderr(files: Files, wording: Wording) -> None:
    """With the policy, the field and the pod's own word; exit code 1."""
    result = files.on(ARM, policies=[REJECTED])
    assert result.exit_code == 1
    assert result.stdout.split() == ["Pod/mnist", "in", "research:", "rejected"]
    assert result.stderr.startswith("rejected: Pod/mnist in research: ")
    mentions(result.stderr, "policy amd64-only", "requirements.nodeSelector[arch]", "'amd64'")
    mentions(result.stderr, "'arm64'")
    wording(result.stderr)


def test_with_nodes_it_says_how_many_remain(files: Files) -> None:
    """Before and after; of a pod that keeps its placement only how many there are."""
    nodes = files.folder / "nodes.yaml"
    assert "  nodes: 2 of 3 admit the pod, 1 did before\n" in files.on(POD, "--nodes", nodes).stdout
    assert "  nodes: 1 of 3 admit the pod\n" in files.on(WEB, "--nodes", nodes).stdout


def test_nodes_of_a_runtime_class_are_unknown(files: Files) -> None:
    """No form of the answer names nodes that admit the pod."""
    sandboxed = policy("sandboxed", "defaults: {runtimeClassName: gvisor}")
    nodes = ("--nodes", files.folder / "nodes.yaml")
    result = files.on(POD, *nodes, policies=[sandboxed])
    mentions(result.stdout, "nodes: unknown, RuntimeClass gvisor", "1 of 3", "without it")
    mentions(result.stderr, "which nodes admit it is unknown")
    (patch,) = json.loads(files.on(POD, *nodes, "-o", "patch").stdout)
    assert "gvisor" in patch["nodes"]["unknown"]
    assert files.on(POD, *nodes, "--fail-on", "unknown").exit_code == 1


def test_names_are_one_line_for_each_kind_of_pods(files: Files) -> None:
    """What becomes of them, and by which policies."""
    result = files.on(f"{TF_JOB}---\n{WEB}---\n{POD}", "-o", "name")
    lines = [re.split(r"\s{2,}", line) for line in result.stdout.splitlines()]
    assert [line[1:] for line in lines] == [
        ["placed", "workers-on-spot"],
        ["not-a-run"],
        ["placed", "workers-on-spot"],
    ]
    workers, web, pod = [line[0] for line in lines]
    mentions(workers, "TFJob/mnist in default", "worker × 3")
    assert (web, pod) == ("Deployment/web in default", "Pod/mnist in research")


def test_patches_apply_to_the_pods(files: Files) -> None:
    """One entry for each kind of pods, with the JSON Patch that the API server would get."""
    (found,) = json.loads(files.on(POD, "-o", "patch").stdout)
    assert (found["object"], found["namespace"], found["result"]) == (
        "Pod/mnist",
        "research",
        "placed",
    )
    after = jsonpatch.apply_patch(load_yaml(POD), found["patch"])
    assert after["spec"]["tolerations"][0]["key"] == "spot"


def printed(files: Files, objects: str, form: str, *policies: str) -> list[dict[str, Any]]:
    result = files.on(objects, "-o", form, policies=policies)
    if form == "yaml":
        return list(load_all_yaml(result.stdout))
    whole = json.loads(result.stdout)
    return whole["items"] if whole["kind"] == "List" else [whole]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_all_objects_are_printed_with_their_templates_mutated(files: Files, form: str) -> None:
    """Those that make no pods too, as they were: the whole can be applied."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {v: 'y'}}\n"
    found = printed(files, f"{service}---\n{TF_JOB}", form)
    assert found[0] == load_yaml(service)
    template = found[1]["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    assert template["spec"]["tolerations"][0]["key"] == "spot"
    assert list(template["metadata"]) == ["annotations"]
    assert found[1]["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] == 3


def test_one_object_is_printed_as_itself(files: Files) -> None:
    """Not as a List of one, as kubectl does it."""
    assert json.loads(files.on(POD, "-o", "json").stdout)["kind"] == "Pod"


def test_objects_whose_pods_would_be_rejected_are_left_out(files: Files, wording: Wording) -> None:
    """And named on stderr, with the rejection; exit code 1."""
    result = files.on(f"{ARM}---\n{WEB}", "-o", "yaml", policies=[REJECTED])
    assert [each["kind"] for each in load_all_yaml(result.stdout)] == ["Deployment"]
    wording(line_with(result.stderr, "note: ", "not printed", "rejected", "Pod/mnist"))
    assert result.exit_code == 1


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_template_that_cannot_be_what_all_its_pods_would_be_is_not_printed(
    files: Files, form: str, wording: Wording
) -> None:
    """Worker 0 leads: the webhook would change its pod, or the others would be wrong. Exit 1."""
    result = files.on(f"{TF_JOB}---\n{WEB}", "-o", form, policies=[FIRST])
    assert result.exit_code == 1
    (found,) = load_all_yaml(result.stdout)
    assert found["kind"] == "Deployment"
    error = line_with(result.stderr, "error: ", "not printed", "TFJob/mnist")
    mentions(error, "worker 0 of 3", "worker 1-2 of 3", "-o patch")
    wording(error)
    assert files.on(TF_JOB, "-o", "patch", policies=[FIRST]).exit_code == 0


def test_what_is_printed_is_decided_on_once_more(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever was decided before: what the webhook would refuse or change is not printed."""
    source, path = files.write("pod.yaml", ARM), files.write("rejects.yaml", REJECTED)
    offline = read_offline([source], [files.folder / "policies.yaml"], "default", None)
    decided = decisions(offline)
    now = replace(offline, world=replace(offline.world, policies=read_policies([path])))
    assert not show(now, decided, "yaml")
    told = capsys.readouterr()
    assert told.out == ""
    line_with(told.err, "error: ", "not printed", "Pod/mnist", "policy amd64-only")


SPARK = """\
apiVersion: sparkoperator.k8s.io/v1alpha1
kind: SparkConnect
metadata: {name: NAME}
spec: {server: {cores: 1}, executor: {instances: 2}}
"""
FLOW = "apiVersion: example.com/v1\nkind: Flow\nmetadata: {name: c}\n"
NO_TEMPLATE = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {}\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"


@pytest.mark.parametrize("form", ["diff", "yaml", "json", "patch", "name"])
def test_kinds_with_unknown_pods_are_reported_once(
    files: Files, form: str, wording: Wording
) -> None:
    """In every form of output, beside all others; what makes no pods is no matter."""
    two = SPARK.replace("NAME", "a"), SPARK.replace("NAME", "b")
    objects = "---\n".join((*two, POD, FLOW, NO_TEMPLATE, SERVICE))
    result = files.on(objects, "-o", form)
    assert result.exit_code == 0
    notes = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    spark, broken, unknown = notes
    mentions(spark, "SparkConnect makes pods", "not read", "SparkConnect/a and 1 more")
    mentions(broken, "StatefulSet makes pods", "StatefulSet/s")
    mentions(unknown, "Flow", "unknown")
    assert "Service" not in result.stderr
    wording("\n".join(notes))


def test_a_kind_that_is_only_read_with_others_is_reported_too(
    files: Files, wording: Wording
) -> None:
    """It is no object that makes no pods."""
    result = files.on(SPARK)
    error = str(result.exception)
    mentions(error, "SparkConnect makes pods", "not read")
    wording(error, {files.folder: "DIR"})


def test_one_bad_file_does_not_stop_the_others(files: Files) -> None:
    """Nor does an object that is none, a Run, or a pod of the wrong shape; exit code 1 says it."""
    folder = files.folder / "folder"
    folder.mkdir()
    bad = POD.replace("spec:\n", "spec:\n  nodeSelector: 5\n").replace("mnist", "odd")
    own_run = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\n"
        "spec: {template: {spec: {containers: [{name: a}]}}}\n"
    )
    for name, text in (
        ("a.yaml", "kind: ["),
        ("b.yaml", bad),
        ("c.yaml", own_run),
        ("d.yaml", "a: b"),
        ("e.yaml", POD),
    ):
        (folder / name).write_text(text)
    policies = files.folder / "policies.yaml"
    for form in ("diff", "yaml", "json", "patch", "name"):
        result = files.run("-f", folder, "--policies", policies, "-o", form)
        assert result.exit_code == 1
        assert "mnist" in result.stdout
        assert "odd" not in result.stdout
        problems = [name for name in "abcde" if f"{folder}/{name}.yaml:" in result.stderr]
        assert problems == ["a", "b", "c", "d"]
    (folder / "e.yaml").unlink()
    nothing = files.run("-f", folder, "--policies", policies)
    assert (nothing.exit_code, nothing.stdout) == (1, "")


def test_what_is_printed_gives_no_second_change(files: Files) -> None:
    """What was mutated once is unchanged when it comes again."""
    first = files.on(f"{TF_JOB}---\n{POD}", "-o", "yaml")
    second = files.on(first.stdout, "-o", "yaml")
    assert second.stdout == first.stdout
    names = files.on(first.stdout, "-o", "name").stdout
    assert "placed" not in names
    assert names.count("unchanged") == 2


def test_warnings_are_reported_on_stderr(files: Files) -> None:
    """As kubectl shows them, with whom they are about."""
    slip = POD.replace("run: mnist", "run: mnist, fairlead.dev/kind: expriment")
    result = files.on(slip)
    subject = "Pod/mnist in research"
    line_with(result.stderr, f"warning: {subject}:", "label fairlead.dev/kind", "'expriment'")


def test_objects_come_from_standard_input(files: Files) -> None:
    """As kubectl prints them."""
    result = files.run("-f", "-", "--policies", files.folder / "policies.yaml", stdin=POD)
    mentions(result.stdout.splitlines()[0], "Pod/mnist in research", "placed")


def test_unknown_labels_are_reported(files: Files, wording: Wording) -> None:
    """A policy that asks for the namespace's labels would else silently not apply."""
    asks = policy(
        "asks", "match: {namespaceSelector: {matchLabels: {a: b}}}, defaults: {schedulerName: s}"
    )
    noted = files.on(POD, policies=[asks]).stderr
    assert noted.startswith("note: ")
    mentions(noted, "labels", "research", "--namespaces")
    wording(noted)


def test_wrong_usage_is_reported(files: Files) -> None:
    """Exit code 2 for a file that is not there, or an option that is missing."""
    assert files.run("-f", files.folder / "nothing.yaml", "--policies", ".").exit_code == 2
    assert files.run("-f", files.folder / "nodes.yaml").exit_code == 2


def test_the_policies_of_several_paths_are_one_set(files: Files) -> None:
    """A class in one file, a policy about it in another."""
    classes, policies = POLICIES.split("---\n", 1)
    one, other = files.write("classes.yaml", classes), files.write("only.yaml", policies)
    source = files.write("pod.yaml", POD)
    result = files.run("-f", source, "--policies", one, "--policies", other, "-o", "name")
    assert "workers-on-spot" in result.stdout


@pytest.mark.parametrize("form", ["diff", "yaml", "patch", "name"])
def test_a_typo_in_a_template_is_an_error_in_its_line(files: Files, form: str) -> None:
    """All of them at once; the pods would come without what their author meant."""
    job = TF_JOB.replace("spec: {containers", "spec: {nodeSelectors: {a: b}, containers")
    job = job.replace("image: tf", "image: tf, resources: {requests: {cpu: 2}, limits: {cpu: 1}}")
    result = files.on(job, "-o", form)
    assert result.exit_code == 1
    assert result.stdout == ""
    message = str(result.exception)
    first, second = message.splitlines()
    where = "spec.tfReplicaSpecs.Worker.template.spec"
    mentions(
        first, "objects.yaml:8:25: TFJob/mnist: ", f"{where}.nodeSelectors: ", "'nodeSelector'"
    )
    mentions(second, "objects.yaml:8:", f"{where}.containers[0].resources.requests.cpu: ", "above")


def test_a_field_that_may_be_newer_is_warned_of(files: Files) -> None:
    """The pods are decided on all the same."""
    result = files.on(POD.replace("spec:\n", "spec:\n  brandNewThing: 1\n"))
    assert result.exit_code == 0
    mentions(result.stderr, "warning: ", "objects.yaml:8:", "spec.brandNewThing", "Kubernetes")
    mentions(result.stdout, "placed")


NOWHERE = policy("nowhere", "defaults: {nodeSelector: {pool: none}}")
ASKS = policy(
    "asks", "match: {namespaceSelector: {matchLabels: {a: b}}}, defaults: {schedulerName: x}"
)


def test_a_misspelt_run_label_is_a_warning(files: Files) -> None:
    """Also the right label in the wrong place: no policy reaches the pods."""
    misspelt = POD.replace("fairlead.dev/run:", "fairlead.dev/Run:")
    for objects, facts in (
        (misspelt, ("Pod/mnist", "label fairlead.dev/Run", "did you mean fairlead.dev/run?")),
        (WEB, ("Deployment/web", "label fairlead.dev/run is on the Deployment itself")),
    ):
        result = files.on(objects, "-o", "name")
        assert result.exit_code == 0
        line_with(result.stderr, *facts)
        assert files.on(objects, "-o", "name", "--fail-on", "warning").exit_code == 1
    unmarked = WEB.replace(", labels: {fairlead.dev/run: web}", "")
    assert files.on(unmarked, "--fail-on", "warning").exit_code == 0


def test_json_objects_that_follow_each_other_are_all_read(files: Files) -> None:
    """As kubectl reads them, each with its place."""
    one = json.dumps(load_yaml(POD))
    other = json.dumps(load_yaml(POD.replace("name: mnist", "name: other")))
    result = files.on(one + other, "-o", "name")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["Pod/mnist", "Pod/other"]


def test_fail_on_adds_to_what_ends_with_code_1(files: Files, wording: Wording) -> None:
    """A pod without a node, a warning, and what is not known; a rejection always does."""
    nodes = ("--nodes", files.folder / "nodes.yaml")
    odd = POD.replace("role: worker", "role: wroker")

    def code(objects: str, policies: str, *arguments: str | Path) -> int:
        return files.on(objects, *arguments, policies=[policies]).exit_code

    assert code(POD, NOWHERE, *nodes) == 0
    assert code(POD, NOWHERE, *nodes, "--fail-on", "warning", "--fail-on", "unknown") == 0
    result = files.on(POD, *nodes, "--fail-on", "no-node", policies=[NOWHERE])
    assert result.exit_code == 1
    mentions(result.stderr, "Pod/mnist in research", "none of the 3 nodes")
    wording(result.stderr)
    assert code(POD, POLICIES, *nodes, "--fail-on", "no-node") == 0
    assert code(odd, POLICIES) == 0
    assert code(odd, POLICIES, "--fail-on", "warning") == 1
    assert code(POD, ASKS) == 0
    assert code(POD, ASKS, "--fail-on", "unknown") == 1
    assert code(ARM, REJECTED, "--fail-on", "warning") == 1
    assert code(POD, POLICIES, "--fail-on", "no-node") == 2


@pytest.mark.parametrize("form", ["name", "yaml", "patch"])
def test_a_set_that_check_refuses_is_refused(files: Files, form: str) -> None:
    """No folder with a fault serves in place of a good one, so no answer is made of it."""
    cost = "{controller.kubernetes.io/pod-deletion-cost: high}"
    faulty = policy("costly", f"overrides: {{annotations: {cost}}}")
    result = files.on(POD, "-o", form, policies=[faulty])
    assert (result.exit_code, result.stdout) == (1, "")
    mentions(str(result.exception), "policies.yaml", "spec.overrides.annotations", "'high'")


def test_the_claims_of_a_stateful_set_are_matched_and_not_printed(files: Files) -> None:
    """The shipped policy keeps its pods on demand; the volumes are not the template's."""
    spot, stateful = (
        Path("policies", each).read_text()
        for each in ("capacity/gke-spot.yaml", "stateful-on-demand/stateful-on-demand.yaml")
    )
    result = files.on(STATEFUL_SET, "-o", "yaml", policies=[spot, "---\n", stateful])
    assert result.exit_code == 0
    spec = load_yaml(result.stdout)["spec"]["template"]["spec"]
    assert "requiredDuringScheduling" in str(spec["affinity"]["nodeAffinity"])
    assert "volumes" not in spec
