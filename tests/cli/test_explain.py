"""`fairlead explain` says why: each policy, each field, each node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.files import POD, POLICIES, REJECTED, TF_JOB, WEB, Files
from tests.policy_tests.writing import CLASS, policy
from webhook.cli.explain import command

MASTERS = policy("masters", "match: {roles: [master]}, defaults: {nodeSelector: {pool: steady}}")
AUDITED = policy(
    "tried",
    "description: Tried out., enforcement: Audit, defaults: {nodeSelector: {a/b: c}, "
    "tolerations: [{key: gpu, operator: Exists}]}",
)
WINDOWS = policy("windows", "defaults: {nodeSelector: {kubernetes.io/os: windows}}")
LATER = policy("later", "overrides: {capacity: [{class: spot, mode: Prevent}]}")
ARM = POD.replace("spec:\n", "spec:\n  nodeSelector: {arch: arm64}\n")
DAEMONS = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  template:
    metadata: {labels: {fairlead.dev/run: agent}}
    spec: {containers: [{name: main}]}
"""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder with policies and nodes."""
    return Files(tmp_path, command)


def told(files: Files, objects: str, *policies: str, nodes: bool = False) -> list[str]:
    """The lines, without their indentation and with single blanks."""
    arguments = ("--nodes", files.folder / "nodes.yaml") if nodes else ()
    result = files.on(objects, *arguments, policies=policies)
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def explained(files: Files, objects: str, *policies: str) -> dict[str, Any]:
    """The first pod's explanation for programs."""
    nodes = files.folder / "nodes.yaml"
    result = files.on(objects, "-o", "json", "--nodes", nodes, policies=policies)
    first: dict[str, Any] = json.loads(result.stdout)["pods"][0]
    return first


def test_what_objects_are_called_steers_no_terminal(files: Files) -> None:
    """What `kubectl get -o yaml` prints may be anybody's, and has free texts beside names."""
    odd = POD.replace("namespace: research", 'namespace: "n\\n::error::x\\e[31m"')
    result = files.on(odd, policies=[POLICIES])
    assert "in n ::error::x\\x1b[31m: placed" in result.stdout
    assert "\x1b" not in result.output


def test_an_explanation_reads_at_once(files: Files) -> None:
    """The whole of it for a plain pod: verdict, who it is, policies, fields, nodes."""
    nodes = files.folder / "nodes.yaml"
    result = files.on(POD, "--nodes", nodes, policies=[POLICIES, MASTERS])
    assert result.exit_code == 0
    found = result.stdout.replace(str(files.folder), "DIR")
    _, _, set_hash = found.partition("(set ")
    assert (
        found
        == f"""\
Pod/mnist in research: placed by workers-on-spot
  from      DIR/objects.yaml:1:1
  identity  run=mnist kind=job framework=- role=worker index=- coordinator=no marked-by=fairlead

  Policies (set {set_hash[:16]})
    applies  workers-on-spot  Workers go to spot
    no       masters          match.roles: worker is none of master

  Fields
    set  workers-on-spot, overrides  capacity[spot]: Constrain

  Nodes: 2 of 3 admit the pod, 1 did before
    2  open to it: spot-1, spot-2
    1  required affinity pool In [spot]: steady-1
"""
    )


def test_every_policy_that_does_not_match_tells_the_condition(files: Files) -> None:
    """Match blocks and exclude blocks."""
    excluded = policy(
        "excluded", "exclude: [{namespaces: [research]}], defaults: {schedulerName: s}"
    )
    lines = told(files, POD, MASTERS, excluded)
    assert "no masters match.roles: worker is none of master" in lines
    assert "no excluded exclude[0] holds: namespaces" in lines
    assert lines[0].endswith("unchanged: no policy matches")


def test_who_lost_a_field_stands_by_who_won_it(files: Files) -> None:
    """With the reason."""
    lines = told(files, POD, POLICIES, LATER)
    at = lines.index("Fields")
    assert lines[at + 1 : at + 3] == [
        "lost later, overrides capacity[spot]: policy workers-on-spot (overrides) decides it",
        "set workers-on-spot, overrides capacity[spot]: Constrain",
    ]


def test_policies_under_audit_tell_what_they_would_do(files: Files) -> None:
    """Field by field; the pod is not changed by them."""
    lines = told(files, POD, AUDITED)
    assert "audit tried Tried out." in lines
    at = lines.index("If the policies under audit were enforced")
    assert lines[at + 1 : at + 3] == [
        "set spec.nodeSelector {a/b}",
        "set spec.tolerations 1 entry",
    ]
    assert lines[0].endswith("unchanged: no policy matches")
    short = files.on(POD, "--policy", "tried", policies=[AUDITED]).stdout
    assert "audit tried Tried out. (it changes nothing; " in " ".join(short.split())


def test_a_policy_that_is_not_rolled_out_to_the_namespace_says_so(files: Files) -> None:
    """It is under Audit there, whatever it is elsewhere."""
    there = AUDITED.replace("enforcement: Audit", "rollout: {namespaces: [other]}")
    lines = told(files, POD, there)
    assert "audit tried it is not rolled out to the namespace research yet" in lines
    assert "If the policies under audit were enforced" in lines
    here = AUDITED.replace("enforcement: Audit", "rollout: {namespaces: [res*]}")
    assert "applies tried Tried out." in told(files, POD, here)


def test_policies_under_audit_tell_whom_they_would_reject(files: Files) -> None:
    """With the message that the author would get."""
    lines = told(files, ARM, REJECTED.replace("spec: {", "spec: {enforcement: Audit, "))
    assert any(line.startswith("reject policy amd64-only: requirements.node") for line in lines)


def test_a_policy_for_another_operating_system_is_set_aside(files: Files) -> None:
    """It matches, and takes no part: that is no condition of its match block."""
    linux = POD.replace("spec:\n", "spec:\n  os: {name: linux}\n")
    lines = told(files, linux, POLICIES, WINDOWS)
    said = "set aside windows it matches, but it is for nodes that run windows"
    assert said in lines


def test_a_pod_that_is_left_alone_tells_why(files: Files) -> None:
    """And that policies which match take no part."""
    lines = told(files, DAEMONS, WINDOWS)
    assert lines[0].startswith(
        "DaemonSet/agent in default, one pod a node: left alone: made by the DaemonSet controller"
    )
    assert "set aside windows it matches, but the pod is left alone" in lines


def test_a_rejected_pod_tells_why(files: Files) -> None:
    """The message on top, the field in its line, exit code 1."""
    result = files.on(ARM, policies=[REJECTED])
    assert result.exit_code == 1
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "Pod/mnist in research: rejected"
    assert any(line.startswith("because policy amd64-only: requirements.node") for line in lines)
    assert "Fields, of which none is changed" in lines
    assert any(line.startswith("rejected amd64-only, requirements nodeSel") for line in lines)


def test_a_request_that_cannot_be_read_is_told(files: Files) -> None:
    """An annotation that names an unknown class rejects before any policy counts."""
    asks = POD.replace("labels:", "annotations: {fairlead.dev/capacity: spott=Allow}\n  labels:")
    lines = told(files, asks, POLICIES, AUDITED)
    assert any("there is no capacity class 'spott'" in line for line in lines)
    assert "set aside tried it matches, but the pod is rejected before it would count" in lines


def test_a_pod_of_no_run_tells_the_cure(files: Files) -> None:
    """And nothing of policies, for none is asked."""
    lines = told(files, WEB)
    assert lines[0] == "Deployment/web in default: not part of a run: left as it is"
    assert "cure the label fairlead.dev/run is on the Deployment itself" in "\n".join(lines)
    assert not any(line.startswith("Policies") for line in lines)


def test_warnings_are_part_of_it(files: Files) -> None:
    """Those that the author would see."""
    slip = POD.replace("run: mnist", "run: mnist, fairlead.dev/kind: expriment")
    lines = told(files, slip)
    assert lines[lines.index("Warnings") + 1].startswith("label fairlead.dev/kind: 'expriment'")


def test_replicas_tell_their_indexes(files: Files) -> None:
    """All of those that are alike."""
    lines = told(files, TF_JOB)
    assert lines[0] == "TFJob/mnist in default, worker × 3: placed by workers-on-spot"
    assert "(spec.tfReplicaSpecs.Worker.template)" in "\n".join(lines)
    assert "role=worker index=0-2 " in "\n".join(lines)


def test_nodes_that_stay_the_same_are_said_to(files: Files) -> None:
    """Before and after are then one list."""
    lines = told(files, POD, MASTERS, nodes=True)
    assert "Nodes: 1 of 3 admit the pod, the same as before" in lines
    assert "2 untolerated taint spot=true:NoSchedule: spot-1, spot-2" in lines


def test_a_node_that_is_made_on_demand_is_told_of(files: Files) -> None:
    """Which class makes it; to programs as well."""
    made = CLASS.replace(
        "{nodes: [{labels: {pool: spot}", "{autoscaled: true, nodes: [{labels: {pool: new}"
    )
    constrain = policy("news", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    lines = told(files, POD, made, constrain, nodes=True)
    assert "Nodes: 0 of 3 admit the pod now; class spot makes them on demand" in lines
    assert explained(files, POD, made, constrain)["nodes"]["onDemand"] == ["spot"]


def test_programs_get_everything(files: Files) -> None:
    """Identity, answers, trace, patch, and all nodes by name, before and after."""
    found = explained(files, POD, POLICIES, MASTERS)
    assert found["identity"]["role"] == "worker"
    assert [(each["name"], each["answer"]) for each in found["policies"]] == [
        ("workers-on-spot", "applies"),
        ("masters", "no"),
    ]
    assert found["trace"][0] == {
        "field": "capacity[spot]",
        "policy": "workers-on-spot",
        "part": "overrides",
        "outcome": "set",
        "reason": "Constrain",
    }
    assert found["nodes"]["before"]["admitted"] == ["steady-1"]
    assert found["nodes"]["after"]["shut"] == [
        {"condition": "required affinity pool In [spot]", "nodes": ["steady-1"]}
    ]
    assert found["result"] == "placed"
    assert found["patch"]
    assert found["warnings"] == []


def test_programs_get_audits_and_rejections_too(files: Files) -> None:
    """Of a rejected pod there is no `after`."""
    found = explained(files, ARM, REJECTED, AUDITED)
    assert found["result"] == "rejected"
    assert found["nodes"]["after"] is None
    assert found["audited"]["policies"] == ["tried"]


def test_many_terms_are_cut(files: Files) -> None:
    """A condition of a hundred alternatives is no reading; -o json has it whole."""
    shapes = ", ".join(f"{{labels: {{pool: p{at}}}}}" for at in range(30))
    many = CLASS.replace("[{labels: {pool: spot}, taints", f"[{shapes}, {{labels: {{x: z}}, taints")
    nodes = files.folder / "nodes.yaml"
    only = policy("only", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    result = files.on(POD, "--nodes", nodes, policies=[many, only])
    (line,) = [line for line in result.stdout.splitlines() if "…" in line]
    assert len(line) <= 100


def test_one_field_has_a_short_answer(files: Files) -> None:
    """Who set it, and which policies could have and do not match; the same for programs."""
    toleration = "tolerations: [{key: spot, operator: Exists}]"
    masters = policy("masters", f"match: {{roles: [master]}}, defaults: {{{toleration}}}")
    result = files.on(POD, "--field", "tolerations", policies=[POLICIES, masters])
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "Pod/mnist in research, tolerations",
        "set workers-on-spot, overrides capacity[spot]: Constrain",
        "no masters match.roles: worker is none of master",
    ]
    nobody = files.on(POD, "--field", "schedulerName")
    assert nobody.stdout.endswith("no policy of the set says anything of schedulerName\n")
    slip = files.on(POD, "--field", "nodeSelektor.pool").stdout
    assert "anything of nodeSelektor.pool; did you mean 'nodeSelector'?" in " ".join(slip.split())
    found = json.loads(files.on(POD, "--field", "tolerations", "-o", "json").stdout)["pods"][0]
    assert [each["name"] for each in found["policies"]] == ["workers-on-spot", "masters"]
    assert [each["field"] for each in found["trace"]] == ["capacity[spot]"]


def test_one_policy_has_a_short_answer(files: Files) -> None:
    """Whether it matches, and why not; one that is not there is wrong."""
    result = files.on(POD, "--policy", "masters", policies=[POLICIES, MASTERS])
    assert "no masters match.roles: worker is none of master" in " ".join(result.stdout.split())
    assert "workers-on-spot" not in result.stdout
    assert "did you mean masters" in str(files.on(POD, "--policy", "master").exception)


def test_files_and_objects_of_a_cluster_are_not_mixed(files: Files) -> None:
    """Nor is nothing asked for; each with what is wanted."""
    source = files.write("pod.yaml", POD)
    for arguments, said in (
        (("pod", "p", "-f", source), "not both"),
        ((), "which pods?"),
        (("-f", source), "-f wants --policies"),
        (("p",), "p: want a kind and a name"),
    ):
        result = files.run(*arguments)
        assert (result.exit_code, said in result.output) == (2, True), result.output
