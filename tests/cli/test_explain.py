"""`fairlead explain` says why: each policy, each field, each node."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.cli.files import NODES, POD, POLICIES, REJECTED, TF_JOB, WEB, Files
from tests.fast_yaml import load_yaml
from tests.policy_tests.writing import CLASS, policy
from tests.wording import Wording, line_with, mentions
from webhook import names
from webhook.cli.explain import command
from webhook.cli.mutate import command as mutate

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
    spec: {containers: [{name: main, image: i}]}
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


def test_a_daemon_sets_pods_are_judged_by_their_nodes(files: Files, wording: Wording) -> None:
    """Those for nodes that do not meet a requirement are rejected; without nodes that is said."""
    strict = policy("strict", "requirements: {nodeSelector: {pool: spot}}")
    agents = DAEMONS.replace("spec: {containers", "spec: {tolerations: [{operator: Exists}], c")
    agents = agents.replace("c: [{name", "containers: [{name")
    options = ("--nodes", files.folder / "nodes.yaml", "-o", "json")
    result = files.on(agents, *options, policies=[strict])
    assert result.exit_code == 1
    placed, rejected = json.loads(result.stdout)["pods"]
    assert (placed["result"], rejected["result"]) == ("placed", "rejected")
    mentions(rejected["pods"], "steady-1")
    mentions(rejected["reason"], "strict", "nodeSelector[pool]", "steady-1")
    wording(f"{rejected['pods']}: {rejected['reason']}")
    (files.folder / "nodes.yaml").write_text(NODES.replace("pool: spot", "pool: other"))
    (rejected,) = json.loads(files.on(agents, *options, policies=[strict]).stdout)["pods"]
    assert rejected["result"] == "rejected"
    unknown = files.on(agents, "--fail-on", "unknown", policies=[strict])
    assert unknown.exit_code == 1
    mentions(unknown.stderr, "DaemonSet/agent", "--nodes")
    wording(unknown.stderr.splitlines()[-1])


def test_what_objects_are_called_steers_no_terminal(files: Files) -> None:
    """What `kubectl get -o yaml` prints may be anybody's, and has free texts beside names."""
    odd = POD.replace("namespace: research", 'namespace: "n\\n::error::x\\e[31m"')
    result = files.on(odd, policies=[POLICIES])
    assert "in n ::error::x\\x1b[31m: placed" in result.stdout
    assert "\x1b" not in result.output


def test_an_explanation_reads_at_once(files: Files, wording: Wording) -> None:
    """The whole of it for a plain pod: verdict, who it is, policies, fields, nodes."""
    nodes = files.folder / "nodes.yaml"
    result = files.on(POD, "--nodes", nodes, policies=[POLICIES, MASTERS])
    assert result.exit_code == 0
    about, policies, fields, admitted = result.stdout.split("\n\n")
    verdict, source, who = about.splitlines()
    mentions(verdict, "Pod/mnist in research", "placed", "workers-on-spot")
    mentions(source, files.folder / "objects.yaml:1:1")
    mentions(who, "run=mnist", "kind=job", "role=worker", "coordinator=no", "marked-by=fairlead")
    mentions(line_with(policies, "applies"), "workers-on-spot", "Workers go to spot")
    mentions(line_with(policies, "masters"), "no ", "match.roles", "worker", "master")
    mentions(fields, "set", "workers-on-spot, overrides", "capacity[spot]: Constrain")
    assert re.findall(r"\d+", admitted.splitlines()[0]) == ["2", "3", "1"]
    mentions(line_with(admitted, "spot-1, spot-2"), "2 ")
    mentions(line_with(admitted, "steady-1"), "1 ", "pool In [spot]")
    set_hash = result.stdout.partition("(set ")[2][:16]
    wording(result.stdout, {files.folder: "DIR", set_hash: "HASH"})


def test_every_policy_that_does_not_match_tells_the_condition(
    files: Files, wording: Wording
) -> None:
    """Match blocks and exclude blocks."""
    excluded = policy(
        "excluded", "exclude: [{namespaces: [research]}], defaults: {schedulerName: s}"
    )
    lines = told(files, POD, MASTERS, excluded)
    line_with(lines, "no masters match.roles: role is worker")
    wording(line_with(lines, "no excluded exclude[0]", "namespaces"))
    mentions(lines[0], "Pod/mnist", "unchanged", "no policy")
    wording(lines[0])


def test_who_lost_a_field_stands_by_who_won_it(files: Files, wording: Wording) -> None:
    """With the reason."""
    lines = told(files, POD, POLICIES, LATER)
    at = lines.index("Fields")
    lost, won = lines[at + 1 : at + 3]
    mentions(lost, "lost later, overrides capacity[spot]:", "workers-on-spot (overrides)")
    assert won == "set workers-on-spot, overrides capacity[spot]: Constrain"
    wording(lost)


def test_policies_under_audit_tell_what_they_would_do(files: Files, wording: Wording) -> None:
    """Field by field; the pod is not changed by them."""
    lines = told(files, POD, AUDITED)
    assert "audit tried Tried out." in lines
    heading, *changes = lines[-3:]
    mentions(heading, "Audit", "enforced")
    assert changes == [
        "set tried, defaults nodeSelector[a/b]: 'c'",
        "set tried, defaults tolerations[gpu]: gpu op=Exists",
    ]
    mentions(lines[0], "unchanged", "no enforced policy")
    short = files.on(POD, "--policy", "tried", policies=[AUDITED]).stdout
    mentions(short, "audit tried Tried out.", "if enforced, set: nodeSelector[a/b]: 'c'")
    one = files.on(POD, "--field", "tolerations", policies=[AUDITED]).stdout
    mentions(one, "tried, defaults", "if enforced, set: tolerations[gpu]: gpu op=Exists")
    assert "nodeSelector" not in one
    wording(heading)
    wording(short)


def test_a_policy_that_is_not_rolled_out_to_the_namespace_says_so(
    files: Files, wording: Wording
) -> None:
    """It is under Audit there, whatever it is elsewhere."""
    there = AUDITED.replace("enforcement: Audit", "rollout: {namespaces: [other]}")
    lines = told(files, POD, there)
    wording(line_with(lines, "audit tried", "not rolled out", "namespace research"))
    mentions(lines[-2], "set tried, defaults nodeSelector[a/b]: 'c'")
    here = AUDITED.replace("enforcement: Audit", "rollout: {namespaces: [res*]}")
    assert "applies tried Tried out." in told(files, POD, here)


RICH = """\
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
[{matchExpressions: [{key: zone, operator: In, values: [a, b]}]}]}},
podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution:
[{weight: 3, podAffinityTerm: {topologyKey: rack}}]}},
topologySpreadConstraints: [{topologyKey: host, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}],
capacity: [{class: spot, mode: Prevent}], priorityClassName: low
""".replace("\n", " ")


def test_settings_under_audit_are_reported_with_their_values(
    files: Files, wording: Wording
) -> None:
    """Policy, field and value, of every kind of field; and who would then lose to them."""
    rich = policy("rich", f"priority: 9, enforcement: Audit, overrides: {{{RICH}}}")
    lines = told(files, POD, CLASS, rich, policy("low", "overrides: {priorityClassName: lower}"))
    heading = line_with(lines, "Audit", "enforced")
    found = lines[lines.index(heading) + 1 :]
    assert all("rich" in line for line in found if line.startswith("set"))
    whole = " ".join(found)
    mentions(whole, "zone In [a, b]", "topologyKey: rack", "maxSkew: 2", "capacity[spot]: Prevent")
    mentions(whole, "priorityClassName: low", "lost low, overrides priorityClassName:")
    wording("\n".join(found))


def test_a_policy_under_audit_that_would_change_nothing_says_so(
    files: Files, wording: Wording
) -> None:
    """Silence would look as if it had not been asked."""
    like = policy("like", "enforcement: Audit, defaults: {schedulerName: other}")
    lines = told(files, POD.replace("spec:\n", "spec:\n  schedulerName: own\n"), like)
    heading = line_with(lines, "Audit", "enforced")
    assert lines[lines.index(heading) + 1].startswith("same like ")
    wording(lines[lines.index(heading) + 1])


def test_policies_under_audit_tell_whom_they_would_reject(files: Files) -> None:
    """With the message that the author would get."""
    lines = told(files, ARM, REJECTED.replace("spec: {", "spec: {enforcement: Audit, "))
    line_with(lines, "reject policy amd64-only:", "requirements.nodeSelector[arch]", "'amd64'")


def test_a_policy_for_another_operating_system_is_set_aside(files: Files, wording: Wording) -> None:
    """It matches, and takes no part: that is no condition of its match block."""
    linux = POD.replace("spec:\n", "spec:\n  os: {name: linux}\n")
    lines = told(files, linux, POLICIES, WINDOWS)
    wording(line_with(lines, "set aside windows", "matches", "nodes that run windows"))


def test_a_pod_that_is_left_alone_tells_why(files: Files, wording: Wording) -> None:
    """And that policies which match take no part."""
    lines = told(files, DAEMONS, WINDOWS)
    mentions(lines[0], "DaemonSet/agent in default", "left alone", "DaemonSet controller")
    wording(lines[0])
    wording(line_with(lines, "set aside windows", "left alone"))


def test_a_policy_without_requirements_is_set_aside_for_pods_of_daemon_sets(
    files: Files, wording: Wording
) -> None:
    """Whether the requirement of another policy holds for them, changes them or rejects them."""
    holds = policy("grace", "requirements: {terminationGracePeriodSeconds: 30}")
    for strict, result in (
        (holds, ": unchanged"),
        (policy("strict", "requirements: {nodeSelector: {pool: spot}}"), ": placed"),
        (policy("system", "requirements: {nodeSelector: {kubernetes.io/os: linux}}"), ": rejected"),
    ):
        pods = DAEMONS.replace("spec: {con", "spec: {nodeSelector: {kubernetes.io/os: x}, con")
        lines = told(files, pods if "reject" in result else DAEMONS, CLASS, strict, LATER, WINDOWS)
        mentions(lines[0], "DaemonSet/agent in default", result)
        for name in ("later", "windows"):
            line = line_with(lines, f"set aside {name} it matches", "requires nothing", "DaemonSet")
            assert "rejected before" not in line
            assert "left alone" not in line
        wording(line_with(lines, "set aside later"))


def test_a_rejected_pod_tells_why(files: Files, wording: Wording) -> None:
    """The message on top, the field in its line, exit code 1."""
    result = files.on(ARM, policies=[REJECTED])
    assert result.exit_code == 1
    about, _, fields = result.stdout.split("\n\n")
    verdict, _, _, because = about.split("\n", 3)
    assert verdict.partition(" in ")[0] == "Pod/mnist"
    assert verdict.endswith(": rejected")
    mentions(because, "policy amd64-only:", "requirements.nodeSelector[arch]", "'amd64'", "'arm64'")
    mentions(fields, "none is changed")
    line_with(fields, "rejected amd64-only, requirements", "nodeSelector[arch]", "'amd64'")
    wording(because)
    wording(fields)


def test_a_request_that_cannot_be_read_is_reported(files: Files, wording: Wording) -> None:
    """An annotation that names an unknown class rejects before any policy counts."""
    asks = POD.replace("labels:", "annotations: {fairlead.dev/capacity: spott=Allow}\n  labels:")
    lines = told(files, asks, POLICIES, AUDITED)
    wording(line_with(lines, "annotation fairlead.dev/capacity", "'spott'", "spot)"))
    wording(line_with(lines, "set aside tried", "rejected before"))


def test_a_pod_of_no_run_tells_the_cure(files: Files, wording: Wording) -> None:
    """And nothing of policies, for none is asked."""
    lines = told(files, WEB)
    verdict, *detail = lines
    source, _, cure = " ".join(detail).partition(" cure ")
    mentions(verdict, "Deployment/web in default", "not part of a run")
    assert source.endswith("objects.yaml:5:3 (spec.template)")
    mentions(cure, "fairlead.dev/run", "Deployment", "spec.template.metadata.labels")
    wording(f"{verdict}\n{cure}")


def test_warnings_are_part_of_it(files: Files, wording: Wording) -> None:
    """Those that the author would see."""
    slip = POD.replace("run: mnist", "run: mnist, fairlead.dev/kind: expriment")
    lines = told(files, slip)
    (warning,) = lines[lines.index("Warnings") + 1 :]
    mentions(warning, "label fairlead.dev/kind", "'expriment'")
    wording(warning)


def test_replicas_tell_their_indexes(files: Files) -> None:
    """All of those that are alike."""
    lines = told(files, TF_JOB)
    mentions(lines[0], "TFJob/mnist in default, worker × 3: placed", "workers-on-spot")
    assert "(spec.tfReplicaSpecs.Worker.template)" in "\n".join(lines)
    assert "role=worker index=0-2 " in "\n".join(lines)


def test_nodes_of_a_runtime_class_are_unknown(files: Files, wording: Wording) -> None:
    """What it adds is not read; nodes whose labels exclude the pod are known."""
    sandboxed = policy("sandboxed", "defaults: {runtimeClassName: gvisor}")
    arguments = ("--nodes", files.folder / "nodes.yaml")
    result = files.on(POD, *arguments, "--fail-on", "unknown", policies=[sandboxed])
    assert result.exit_code == 1
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    title = line_with(lines, "Nodes:")
    mentions(title, "unknown", "RuntimeClass gvisor", "1 of 3", "without it")
    mentions(result.stderr, "Pod/mnist", "which nodes admit it is unknown", "gvisor")
    wording(f"{title}\n{result.stderr}")
    assert "gvisor" in explained(files, POD, sandboxed)["nodes"]["unknown"]
    assert explained(files, POD, MASTERS)["nodes"]["unknown"] is None
    nowhere = policy("nowhere", "defaults: {runtimeClassName: gvisor, nodeSelector: {pool: x}}")
    gone = files.on(POD, *arguments, "--fail-on", "no-node", policies=[nowhere])
    assert gone.exit_code == 1
    assert "0 of 3" in gone.stdout


def test_unchanged_nodes_are_reported_as_unchanged(files: Files, wording: Wording) -> None:
    """Before and after are then one list."""
    lines = told(files, POD, MASTERS, nodes=True)
    wording(line_with(lines, "Nodes:", "1 of 3", "same"))
    wording(line_with(lines, "2 ", "taint spot=true:NoSchedule:", "spot-1, spot-2"))


def test_a_node_that_is_made_on_demand_is_reported(files: Files, wording: Wording) -> None:
    """Which class makes it; to programs as well."""
    made = CLASS.replace(
        "{nodes: [{labels: {pool: spot}", "{autoscaled: true, nodes: [{labels: {pool: new}"
    )
    constrain = policy("news", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    lines = told(files, POD, made, constrain, nodes=True)
    wording(line_with(lines, "Nodes:", "0 of 3", "class spot", "on demand"))
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
    (shut,) = found["nodes"]["after"]["shut"]
    assert shut["nodes"] == ["steady-1"]
    mentions(shut["condition"], "affinity", "pool In [spot]")
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


def test_one_field_has_a_short_answer(files: Files, wording: Wording) -> None:
    """Who set it, and which policies could have and do not match; the same for programs."""
    toleration = "tolerations: [{key: spot, operator: Exists}]"
    masters = policy("masters", f"match: {{roles: [master]}}, defaults: {{{toleration}}}")
    result = files.on(POD, "--field", "tolerations", policies=[POLICIES, masters])
    subject, setter, other = [" ".join(line.split()) for line in result.stdout.splitlines()]
    mentions(subject, "Pod/mnist in research", "tolerations")
    assert setter == "set workers-on-spot, overrides capacity[spot]: Constrain"
    mentions(other, "no masters match.roles: role is worker")
    wording(subject)
    none = files.on(POD, "--field", "schedulerName").stdout.splitlines()[1:]
    wording(line_with(none, "no ", "no policy", "schedulerName"))
    found = json.loads(files.on(POD, "--field", "tolerations", "-o", "json").stdout)["pods"][0]
    assert [each["name"] for each in found["policies"]] == ["workers-on-spot", "masters"]
    assert [each["field"] for each in found["trace"]] == ["capacity[spot]"]


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("foo.bar", ["nodeSelector", "tolerations", "capacity"]),
        ("nodeSelektor.pool", ["'nodeSelector'"]),
        ("spec.nodeName", ["nodeSelector"]),
        ("affinity.nodeAffinity.requird", ["affinity.nodeAffinity.required"]),
        ("affinity.podAffinity.required[0]", ["affinity.podAffinity.required"]),
        ("schedulerName.x", ["schedulerName"]),
        ("tolerations[0]", ["tolerations[KEY]"]),
        ("topologySpreadConstraints[0].maxSkew", ["topologySpreadConstraints[TOPOLOGYKEY,"]),
        ("securityContext.runAsUsr", ["'runAsUser'"]),
        ("nodeSelectors", ["'nodeSelector'"]),
    ],
)
def test_a_field_that_no_policy_can_set_is_wrong_usage(
    files: Files, said: str, facts: list[str], wording: Wording
) -> None:
    """Of what is misspelt, "nothing is there" would be no answer."""
    result = files.on(POD, "--field", said)
    error = result.stderr.partition("Error: ")[2]
    assert (result.exit_code, result.stdout) == (2, "")
    mentions(error, f"--field {said}: ", *facts)
    wording(error)


@pytest.mark.parametrize("option", [("--policy", "workers-on-spot"), ("--field", "tolerations")])
def test_of_a_pod_of_no_run_a_question_has_an_answer(
    files: Files, option: tuple[str, str], wording: Wording
) -> None:
    """No policy is asked, and how to become a run's."""
    found = files.on(WEB, *option).stdout
    mentions(found, "not part of a run", "no policy applies", "cure")
    wording(found)


def test_what_rejects_a_pod_is_not_set_as_well(files: Files) -> None:
    """Each setting has one end."""
    zone = "{nodeSelectorTerms: [{matchExpressions: [{key: z, operator: In, values: [b]}]}]}"
    required = f"{{requiredDuringSchedulingIgnoredDuringExecution: {zone}}}"
    one = policy("one", f"requirements: {{affinity: {{nodeAffinity: {required}}}}}")
    other = policy("other", "requirements: {nodeSelector: {arch: amd64}}")
    pod = POD.replace("spec:\n", "spec:\n  nodeSelector: {z: a, arch: arm64}\n")
    trace = explained(files, pod, one, other)["trace"]
    found = sorted((each["policy"], each["outcome"]) for each in trace)
    assert found == [("one", "rejected"), ("other", "rejected")]


def test_what_could_not_be_read_is_part_of_the_answer(files: Files) -> None:
    """For people on stderr, for programs in the document; exit code 1, and all else is there."""
    bad = POD.replace("spec:\n", "spec:\n  nodeSelector: 5\n")
    spark = "apiVersion: sparkoperator.k8s.io/v1beta2\nkind: SparkApplication\nmetadata: {}\n"
    result = files.on(f"{bad}---\n{spark}---\n{WEB}", "-o", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert [each["object"] for each in found["pods"]] == ["Deployment/web"]
    (problem,), (kind,) = found["problems"], found["unread"]
    mentions(problem, "objects.yaml:", "spec.nodeSelector")
    mentions(kind, "SparkApplication")
    assert problem in result.stderr
    assert kind in result.stderr


def test_a_stored_pod_is_not_treated_as_its_authors_text(files: Files) -> None:
    """What policies set cannot be told from what its author wrote: that is said, and counts."""
    pod = load_yaml(POD)
    pod["metadata"]["annotations"] = {names.PLACEMENT: "{}"}
    stored = yaml.safe_dump(pod)
    result = files.on(stored)
    assert result.exit_code == 0
    mentions(result.stderr, "Pod/mnist", "placed before", "explain pod/NAME")
    assert "placed before" not in files.on(POD).stderr
    assert files.on(stored, "--fail-on", "unknown").exit_code == 1


def test_one_policy_has_a_short_answer(files: Files, wording: Wording) -> None:
    """Whether it matches, and why not; one that is not there is wrong usage."""
    result = files.on(POD, "--policy", "masters", policies=[POLICIES, MASTERS])
    line_with(result.stdout, "no masters match.roles: role is worker")
    assert "workers-on-spot" not in result.stdout
    unknown = files.on(POD, "--policy", "master")
    assert (unknown.exit_code, unknown.stdout) == (2, "")
    mentions(unknown.stderr, "master", "masters")
    wording(unknown.stderr.removeprefix("error: ").rstrip())


@pytest.mark.parametrize("command", [command, mutate])
@pytest.mark.parametrize("asks", [("--policies", "cluster"), ("--nodes", "cluster")])
def test_a_cluster_that_is_not_there_leaves_the_question_about_files_unanswered(
    tmp_path: Path, command: click.Command, asks: tuple[str, str]
) -> None:
    """Exit code 2, as for live objects: nothing was found, for nothing was evaluated."""
    files = Files(tmp_path, command)
    given = ("--policies", tmp_path / "policies.yaml") if "--nodes" in asks else ()
    pod = files.write("objects.yaml", POD)
    result = files.run("-f", pod, *given, *asks, "--kubeconfig", tmp_path / "none")
    assert (result.exit_code, result.stdout) == (2, "")
    mentions(result.stderr, "error:", tmp_path / "none", "kubeconfig")


def test_files_and_objects_of_a_cluster_are_not_mixed(files: Files, wording: Wording) -> None:
    """Nor is nothing asked for; each with what is wanted."""
    source = files.write("pod.yaml", POD)
    for arguments, facts in (
        (("pod", "p", "-f", source), ["-f", "not both"]),
        ((), ["pods", "-f"]),
        (("-f", source), ["-f", "--policies"]),
        (("p",), ["p:", "kind", "name"]),
    ):
        result = files.run(*arguments)
        error = result.stderr.partition("Error: ")[2]
        assert (result.exit_code, result.stdout) == (2, "")
        mentions(error, *facts)
        wording(error)


def test_fail_on_is_as_of_mutate(files: Files) -> None:
    """A pod that no node admits."""
    nowhere = policy("nowhere", "defaults: {nodeSelector: {pool: none}}")
    arguments = ("--nodes", files.folder / "nodes.yaml")
    assert files.on(POD, *arguments, policies=[nowhere]).exit_code == 0
    assert files.on(POD, *arguments, "--fail-on", "no-node", policies=[nowhere]).exit_code == 1
    assert files.on(POD, "--fail-on", "no-node", policies=[nowhere]).exit_code == 2
