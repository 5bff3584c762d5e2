"""`fairlead run preview` shows every pod of a Run, what it is told, and who placed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.files import NODES, Files
from tests.fast_yaml import load_all_yaml
from tests.policy_tests.writing import CLASS, policy
from tests.wording import Wording, line_with, mentions
from webhook import names
from webhook.cli.run.preview import command

GOLDEN = Path(__file__).parents[2] / "golden" / "run-preview.txt"
RUN = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: mnist, namespace: research}
spec:
  kind: experiment
  framework: tensorflow
  environment:
    nodeSelector: {pool: spot}
    labels: {team: vision}
  template:
    spec:
      containers:
      - {name: main, image: "mnist:1"}
  replicas:
    master:
      environment: {capacity: [{class: spot, mode: Prefer}]}
    worker:
      count: 7
      resources: {limits: {nvidia.com/gpu: 1}}
      environment: {tolerations: [{key: gpu, operator: Exists}]}
      byIndex:
      - index: 2
        resources: {limits: {nvidia.com/gpu: 4}}
        environment: {patchStrategy: Replace, nodeSelector: {pool: large}}
    ps: {count: 3}
"""
NOTEBOOK = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: lab}
spec:
  kind: notebook
  template:
    spec:
      containers: [{name: main, image: "lab:1", ports: [{containerPort: 8888}]}]
"""
MPI = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: pi}
spec:
  framework: mpi
  template: {spec: {containers: [{name: main, image: "mpi:1"}]}}
  replicas: {launcher: {}, worker: {count: 2}}
"""
DELEGATED = """\
apiVersion: fairlead.dev/v1alpha1
kind: Run
metadata: {name: resnet, namespace: research}
spec:
  backend: kubeflow
  framework: paddle
  template:
    spec:
      containers:
      - {name: main, image: "resnet:1"}
  replicas:
    server: {}
    worker: {count: 3, restartPolicy: ExitCode}
"""
REJECTING = CLASS + policy(
    "no-large-pool",
    "match: {roles: [worker]}, requirements: {nodeSelector: {pool: spot}}",
)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder with policies and nodes."""
    return Files(tmp_path, command)


def preview(files: Files, *arguments: str | Path) -> str:
    """What is printed of files that are right; their folder's name is left out."""
    result = files.run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.replace(f"{files.folder}/", "")


def test_a_preview_is_as_the_golden_file_has_it(files: Files) -> None:
    """To the letter: replicas that are alike together, their placement, who set it, and what they
    are told."""
    run, policies = files.write("run.yaml", RUN), files.folder / "policies.yaml"
    nodes = files.write("nodes.yaml", NODES)
    text = preview(files, "-f", run, "--policies", policies, "--nodes", nodes)
    assert text == GOLDEN.read_text()


def test_nodes_of_a_runtime_class_are_unknown(files: Files) -> None:
    """It is not read, so that no node is said to admit the pods."""
    path = files.write("p.yaml", policy("p", "defaults: {runtimeClassName: gvisor}"))
    nodes = files.folder / "nodes.yaml"
    policies = ("--policies", files.folder / "policies.yaml", "--policies", path)
    asked = ("-f", files.write("run.yaml", RUN), *policies, "--nodes", nodes)
    result = files.run(*asked)
    assert "unknown, RuntimeClass gvisor is not read; " in result.stdout
    line_with(result.stderr, "note: ", "master", "nodes", "unknown", "RuntimeClass gvisor")
    (shown,) = json.loads(files.run(*asked, "-o", "json").stdout)["runs"]
    assert all("gvisor" in each["nodes"]["unknown"] for each in shown["replicas"])


def test_without_policies_it_shows_what_the_run_asks_for(files: Files, wording: Wording) -> None:
    """And says so."""
    result = files.run("-f", files.write("run.yaml", RUN))
    assert result.exit_code == 0
    (note,) = result.stderr.splitlines()
    assert note.startswith("note: ")
    mentions(note, "without --policies", "Run itself")
    wording(note)
    wording(line_with(result.stdout, "master 0:", "Run requests"))
    assert "placed" not in result.stdout
    assert "Fields" not in result.stdout


def test_a_rejected_replica_is_reported_and_is_a_failure(files: Files, wording: Wording) -> None:
    """Worker 2 alone asks for another pool: exit code 1, with the reason in both streams."""
    policies = files.write("policies.yaml", REJECTING)
    result = files.run("-f", files.write("run.yaml", RUN), "--policies", policies)
    assert result.exit_code == 1
    wording(line_with(result.stdout, "worker 0-1, 3-6", "6 pods", "unchanged", "no-large-pool"))
    line_with(result.stdout, "worker 2:", "rejected")
    line_with(result.stdout, "because policy no-large-pool: ")
    (rejection,) = result.stderr.splitlines()
    assert rejection.startswith("rejected: Run/mnist in research, worker 2: ")
    mentions(rejection, "policy no-large-pool", "requirements.nodeSelector[pool]", "'spot'")
    wording(rejection)


def test_yaml_has_every_resulting_object(files: Files) -> None:
    """ConfigMap, Service, then each pod by itself, with the webhook's patch; none is rejected."""
    policies = files.write("policies.yaml", REJECTING)
    run = files.write("run.yaml", RUN)
    result = files.run("-f", run, "--policies", policies, "-o", "yaml")
    assert result.exit_code == 1
    objects = list(load_all_yaml(result.stdout))
    assert [each["kind"] for each in objects] == ["Service"] + ["Pod"] * 10
    found = [each["metadata"]["name"] for each in objects[1:]]
    workers = [f"mnist-worker-{index}" for index in (0, 1, 3, 4, 5, 6)]
    assert found == ["mnist-master-0", *workers, *(f"mnist-ps-{index}" for index in range(3))]
    assert names.PLACEMENT in objects[2]["metadata"]["annotations"]
    assert 'index":6,"type":"worker"' in str(objects[7]["spec"]["containers"][0]["env"])


def test_json_has_the_reasons_too(files: Files) -> None:
    """Of each kind of replica the first pod, the decision and what it is told."""
    run, policies = files.write("run.yaml", RUN), files.folder / "policies.yaml"
    nodes = files.folder / "nodes.yaml"
    text = preview(files, "-f", run, "--policies", policies, "--nodes", nodes, "-o", "json")
    found: dict[str, Any] = json.loads(text)
    (shown,) = found["runs"]
    assert shown["place"] == "run.yaml:1:1"
    assert [(each["role"], each["indexes"]) for each in shown["replicas"]] == [
        ("master", [0]),
        ("worker", [0, 1, 3, 4, 5, 6]),
        ("worker", [2]),
        ("ps", [0, 1, 2]),
    ]
    worker = shown["replicas"][1]
    assert [each["name"] for each in worker["policies"] if each["answer"] == "applies"] == [
        "workers-on-spot"
    ]
    assert worker["trace"][0]["outcome"] == "set"
    assert worker["nodes"]["after"]["admitted"] == ["spot-1", "spot-2"]
    assert worker["pod"]["metadata"]["name"] == "mnist-worker-0"
    assert json.loads(worker["variables"]["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}


def test_a_notebook_is_shown_with_its_deployment_and_address(
    files: Files, wording: Wording
) -> None:
    """Its pod is the one that the Deployment makes."""
    run, policies = files.write("run.yaml", NOTEBOOK), files.folder / "policies.yaml"
    text = preview(files, "-f", run, "--policies", policies, "-n", "team-a")
    about, pod = text.split("\n\n")
    subject, source, deployment, service, address = map(str.split, about.splitlines())
    mentions(" ".join(subject), "Run/lab", "team-a", "notebook", "1 pod")
    assert source == ["from", "run.yaml:1:1"]
    assert deployment[:2] == ["Deployment", "lab,"]
    assert (service[:2], service[-1]) == (["Service", "lab,"], "8888")
    assert address == ["address", "http://lab.team-a.svc:8888"]
    mentions(pod, "Deployment's pod", "unchanged", "container main, lab:1")
    wording(text)
    objects = load_all_yaml(preview(files, "-f", run, "--policies", policies, "--output", "yaml"))
    assert [each["kind"] for each in objects] == ["Service", "Deployment", "Pod"]


def test_files_and_keys_that_replicas_share_are_shown(files: Files, wording: Wording) -> None:
    """With where they are mounted; and the command of a worker that has none."""
    result = files.run("-f", files.write("run.yaml", MPI), "--cluster-domain", "example.org")
    files_line = line_with(result.stdout, "ConfigMap pi-rendezvous:")
    mentions(files_line, "hostfile", "ssh_config", "/etc/fairlead")
    keys_line = line_with(result.stdout, "Secret pi-ssh-00000000:")
    mentions(keys_line, "SSH", "/root/.ssh")
    wording(f"{files_line}\n{keys_line}")
    line_with(result.stdout, "command /usr/sbin/sshd -De -o")
    text = files.run("-f", "-", "--cluster-domain", "example.org", "-o", "yaml", stdin=MPI).stdout
    first = next(iter(load_all_yaml(text)))
    assert first["data"]["hostfile"].startswith("pi-worker-0.pi.default.svc.example.org slots=1\n")


def test_a_containers_own_variable_is_reported_to_stay(files: Files, wording: Wording) -> None:
    """Or somebody would look for the framework's value in vain."""
    own = 'image: "mnist:1", env: [{name: TF_CONFIG, value: "{}"}]'
    result = files.run("-f", files.write("run.yaml", RUN.replace('image: "mnist:1"', own)))
    lines = [line.strip() for line in result.stdout.splitlines() if "TF_CONFIG" in line]
    assert lines
    assert len(set(lines)) == 1
    mentions(lines[0], "TF_CONFIG ", "container's own", "kept")
    wording(lines[0])


def test_what_policies_ask_of_a_namespace_has_to_be_given(files: Files) -> None:
    """A note says so, and --namespaces answers."""
    policies = files.write(
        "policies.yaml",
        CLASS
        + policy(
            "batch",
            "match: {namespaceSelector: {matchLabels: {tier: batch}}}, "
            "overrides: {nodeSelector: {tier: batch}}",
        ),
    )
    run = files.write("run.yaml", RUN)
    unknown = files.run("-f", run, "--policies", policies)
    mentions(unknown.stderr, "labels", "namespace research", "batch", "--namespaces")
    namespaces = files.write(
        "namespaces.yaml",
        "{apiVersion: v1, kind: Namespace, metadata: {name: research, labels: {tier: batch}}}",
    )
    text = preview(files, "-f", run, "--policies", policies, "--namespaces", namespaces)
    line_with(text, "ps 0-2", "3 pods", "placed", "batch")


def test_several_runs_are_shown_one_after_the_other(files: Files, wording: Wording) -> None:
    """Of one file or of several."""
    policies = files.folder / "policies.yaml"
    both = files.write("runs.yaml", f"{NOTEBOOK}---\n{MPI}")
    text = preview(files, "-f", both, "--policies", policies)
    wording(line_with(text, "Run/pi in default", "job", "mpi", "3 pods"))
    line_with(text, "from runs.yaml:10:1")
    objects = load_all_yaml(preview(files, "-f", both, "--policies", policies, "-o", "yaml"))
    assert [each["metadata"].get("name") for each in objects] == [
        "lab",
        "lab",
        None,
        "pi-rendezvous",
        "pi",
        "pi-launcher-0",
        "pi-worker-0",
        "pi-worker-1",
    ]


def test_a_run_with_a_generated_name_is_previewed_with_a_placeholder(
    files: Files, wording: Wording
) -> None:
    """`kubectl create` accepts it. A prefix that begins no name is an error."""
    run = NOTEBOOK.replace("name: lab", "generateName: lab-", 1)
    result = files.run("-f", files.write("run.yaml", run))
    assert result.exit_code == 0
    assert "lab-xxxxx" in result.stdout
    note = line_with(result.stderr, "run.yaml:3:", "lab-xxxxx", "placeholder", "kubectl create")
    wording(note, {files.folder: "DIR"})
    wrong = files.run("-f", files.write("run.yaml", run.replace("lab-", "Lab_")))
    assert wrong.exit_code == 1
    assert "metadata.name" in str(wrong.exception)


def test_the_hash_of_a_notebooks_deployment_is_unknown_and_not_printed(files: Files) -> None:
    """That the label exists is known; a policy that compares it is named, as by the token."""
    settings = "defaults: {schedulerName: s}"
    selector = "podSelector: {matchExpressions: [{key: pod-template-hash, operator: Exists}]}"
    run = files.write("run.yaml", NOTEBOOK)
    exists = files.write("policies.yaml", policy("p", f"match: {{{selector}}}, {settings}"))
    (shown,) = json.loads(preview(files, "-f", run, "--policies", exists, "-o", "json"))["runs"]
    (found,) = shown["replicas"]
    assert [(each["name"], each["answer"]) for each in found["policies"]] == [("p", "applies")]
    assert "pod-template-hash" not in found["pod"]["metadata"]["labels"]
    selector = "podSelector: {matchLabels: {pod-template-hash: a}}, volumes: [projected]"
    compared = files.write("policies.yaml", policy("p", f"match: {{{selector}}}, {settings}"))
    stderr = files.run("-f", run, "--policies", compared).stderr
    mentions(line_with(stderr, "label pod-template-hash"), "Run/lab", "policy p")
    mentions(line_with(stderr, "type projected"), "Run/lab", "policy p")


def test_a_delegated_run_is_shown_with_the_object_and_its_pods(files: Files) -> None:
    """With the Run's roles, and what the webhook makes of the pods that the operator creates."""
    run, policies = files.write("run.yaml", DELEGATED), files.folder / "policies.yaml"
    text = preview(files, "-f", run, "--policies", policies)
    line_with(text, "PaddleJob", "resnet", "the training operator")
    line_with(text, "server 0:", "unchanged")
    line_with(text, "worker 0-2 (3 pods):", "placed", "workers-on-spot")
    line_with(text, 'replica-index: "2"', "of worker 2")
    mentions(text, "container", "paddle, resnet:1")
    (shown,) = json.loads(preview(files, "-f", run, "--policies", policies, "-o", "json"))["runs"]
    assert (shown["object"]["kind"], shown["service"]) == ("PaddleJob", None)
    assert [(each["role"], each["indexes"], each["result"]) for each in shown["replicas"]] == [
        ("server", [0], "unchanged"),
        ("worker", [0, 1, 2], "placed"),
    ]
    made, *pods = load_all_yaml(preview(files, "-f", run, "--policies", policies, "-o", "yaml"))
    assert made == shown["object"]
    assert [each["kind"] for each in pods] == ["Pod"] * 4
    assert pods[1]["spec"]["tolerations"] == shown["replicas"][1]["pod"]["spec"]["tolerations"]


@pytest.mark.parametrize("option", ["--policies", "--nodes", "--namespaces"])
def test_the_word_cluster_has_a_cure(files: Files, option: str, wording: Wording) -> None:
    """Other commands take it; this one reads no cluster."""
    done = files.run("-f", files.write("run.yaml", RUN), option, "cluster")
    assert done.exit_code == 2
    mentions(done.stderr, option, "reads no cluster")
    wording(done.stderr.partition("Error: ")[2])


def test_what_no_engine_can_do_is_an_error_at_its_line(files: Files) -> None:
    """As the controller would report it."""
    run = files.write(
        "run.yaml", DELEGATED.replace("  framework", "  restartScope: Role\n  framework")
    )
    result = files.run("-f", run)
    assert result.exit_code == 1
    mentions(str(result.exception), "run.yaml:6:17", "spec.restartScope", "native")
