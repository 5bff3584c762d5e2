"""Plugins that may run: an answer that depends on them is unknown, and never fine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.fast_yaml import load_yaml
from tests.wording import line_with, mentions
from webhook.cli import fairlead
from webhook.placement.plugin_tolerations import EXTENDED, RESTRICTION

FILES = {
    "policies.yaml": """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: isnull}
spec: {defaults: {patchStrategy: IsNull, tolerations: [{key: gpu, operator: Exists}]}}
""",
    "pods.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: to-ml, namespace: g, labels: {fairlead.dev/run: r}}
spec: &spec
  nodeSelector: {gpu: "true"}
  containers: [{name: m, image: x, resources: {limits: {example.com/fpga: 1, cpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: to-fpga, namespace: g, labels: {fairlead.dev/run: r}}
spec:
  nodeSelector: {pool: big}
  containers: [{name: m, image: x, resources: {limits: {example.com/fpga: 1, cpu: 1}}}]
""",
    "nodes.yaml": """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: ml, labels: {gpu: "true"}}
  spec: {taints: [{key: gpu, value: "true", effect: NoSchedule}]}
  status: {allocatable: {cpu: "8", pods: "110", example.com/fpga: "4"}}
- apiVersion: v1
  kind: Node
  metadata: {name: fpga, labels: {pool: big}}
  spec: {taints: [{key: example.com/fpga, effect: NoSchedule}]}
  status: {allocatable: {cpu: "8", pods: "110", example.com/fpga: "4"}}
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def call(folder: Path, *words: str) -> Result:
    files = {word: str(folder / word) for word in FILES}
    return CliRunner().invoke(fairlead, [files.get(word, word) for word in words])


def ask(folder: Path, command: str, *words: str) -> Result:
    given = ("-f", "pods.yaml", "--policies", "policies.yaml", "--nodes", "nodes.yaml")
    return call(folder, command, *given, *words)


def admitted(result: Result) -> dict[str, Any]:
    """By pod the nodes that admit it, or why they are unknown."""
    return {
        each["object"]: each["nodes"]["unknown"] or each["nodes"]["after"]["admitted"]
        for each in json.loads(result.stdout)["pods"]
    }


def test_without_a_word_about_plugins_the_nodes_are_unknown(folder: Path) -> None:
    """Of the pod on whose nodes a plugin decides, in text and JSON; the other's are known."""
    found = ask(folder, "explain", "-o", "json")
    known = admitted(found)
    assert known["Pod/to-ml"] == ["ml"]
    mentions(known["Pod/to-fpga"], "may run the plugin ExtendedResourceToleration")
    line_with(found.stderr, "note: ", "Pod/to-fpga", "which nodes admit it is unknown", "--plugins")
    text = ask(folder, "explain").stdout
    mentions(
        text,
        "nodes unknown, as plugin ExtendedResourceToleration may run or not; without it 0 of 2",
    )
    assert RESTRICTION not in text, "no node has memory pressure"


@pytest.mark.parametrize("command", ["preview", "explain"])
def test_what_is_unknown_is_neither_fine_nor_without_nodes(folder: Path, command: str) -> None:
    """Exit code 2 for each kind, as of a RuntimeClass that is not read."""
    for kind in ("no-node", "unknown", "warning", "rejected"):
        assert ask(folder, command, "--fail-on", kind).exit_code == 2
    assert ask(folder, command).exit_code == 0


@pytest.mark.parametrize(
    ("plugins", "nodes", "code"),
    [
        (EXTENDED, ["fpga"], 0),
        (f"{EXTENDED},{RESTRICTION}", ["fpga"], 0),
        (RESTRICTION, [], 1),
        ("none", [], 1),
    ],
)
def test_the_option_says_which_run(folder: Path, plugins: str, nodes: list[str], code: int) -> None:
    """Then nothing is unknown, and a pod without nodes fails."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "g"}}
    (folder / "space.json").write_text(json.dumps(space))
    words = ("--plugins", plugins, "--fail-on", "no-node", "--fail-on", "unknown")
    known = ("--namespaces", str(folder / "space.json"))
    found = ask(folder, "explain", "-o", "json", *words, *known)
    assert admitted(found) == {"Pod/to-ml": ["ml"], "Pod/to-fpga": nodes}
    assert found.exit_code == code


def test_a_plugin_of_another_name_is_refused(folder: Path) -> None:
    """With those that there are."""
    found = ask(folder, "explain", "--plugins", "PodTolerationRestrictions")
    assert found.exit_code == 2
    mentions(found.stderr, "'PodTolerationRestrictions'", EXTENDED, RESTRICTION, "none")


def test_a_pod_that_is_printed_has_no_toleration_of_a_plugin(folder: Path) -> None:
    """The API server adds it again."""
    found = ask(folder, "preview", "-o", "yaml", "--plugins", f"{EXTENDED},{RESTRICTION}")
    every = [load_yaml(text) for text in found.stdout.split("---\n") if text.strip()]
    wanted = [{"key": "gpu", "operator": "Exists"}]
    assert [each["spec"]["tolerations"] for each in every] == [wanted, wanted]


def test_a_comparison_says_what_it_does_not_know(folder: Path) -> None:
    """A pod that loses its nodes only if the plugin does not run is no pod without nodes."""
    words = ("diff", "/dev/null", "policies.yaml", "--pods", "pods.yaml", "--nodes", "nodes.yaml")
    line_with(
        call(folder, *words).stderr, "which nodes admit some of the pods is unknown", EXTENDED
    )
    assert "is unknown" not in call(folder, *words, "--plugins", EXTENDED).stderr


def policy_test(folder: Path, cluster: str, runs_on: str) -> Result:
    """The result of a PolicyTest about the pod to the tainted node."""
    (folder / "p.test.yaml").write_text(
        f"""
apiVersion: fairlead.dev/v1alpha1
kind: PolicyTest
policies: [policies.yaml]
{cluster}
nodes:
- name: fpga
  labels: {{pool: big}}
  taints: [{{key: example.com/fpga, effect: NoSchedule}}]
tests:
- name: it runs
  pod:
    labels: {{fairlead.dev/run: r}}
    spec: {{containers: [{{name: m, image: x, resources: {{limits: {{example.com/fpga: 1}}}}}}]}}
  expect: {{runsOn: {runs_on}}}
"""
    )
    return CliRunner().invoke(fairlead, ["test", str(folder / "p.test.yaml")])


@pytest.mark.parametrize(
    ("cluster", "runs_on", "code"),
    [
        ("", "[fpga]", 1),
        ("", "[]", 1),
        (f"cluster: {{plugins: [{EXTENDED}]}}", "[fpga]", 0),
        ("cluster: {plugins: []}", "[]", 0),
        ("cluster: {plugins: []}", "[fpga]", 1),
    ],
)
def test_a_policy_test_says_which_run(folder: Path, cluster: str, runs_on: str, code: int) -> None:
    """Without a word about plugins no expectation about such nodes is met."""
    found = policy_test(folder, cluster, runs_on)
    assert found.exit_code == code, found.output
    if not cluster:
        mentions(" ".join(found.output.split()), "unknown:", "give cluster.plugins")


def test_a_namespaces_annotation_counts_where_the_plugin_runs(folder: Path) -> None:
    """The annotation of a Namespace in a file; the decision takes its tolerations for nobody's."""
    default = json.dumps([{"key": "example.com/fpga", "operator": "Exists"}])
    metadata = {
        "name": "g",
        "annotations": {"scheduler.alpha.kubernetes.io/defaultTolerations": default},
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    (folder / "space.json").write_text(json.dumps(space))
    known = ("-o", "json", "--namespaces", str(folder / "space.json"), "--plugins", RESTRICTION)
    found = ask(folder, "explain", *known)
    assert admitted(found) == {"Pod/to-ml": ["ml"], "Pod/to-fpga": ["fpga"]}


@pytest.mark.parametrize("amount", ["0", "1"])
def test_what_policies_decide_on_a_request_of_zero_is_unknown(tmp_path: Path, amount: str) -> None:
    """The plugin adds a toleration for it, which the author could get by asking so."""
    (tmp_path / "policies.yaml").write_text(
        "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: allowed}\n"
        "spec: {requirements: {allowedTolerations: {patterns: [{key: team}]}}}\n"
    )
    (tmp_path / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {fairlead.dev/run: r}}\n"
        "spec: {containers: [{name: m, image: x, resources: "
        f"{{limits: {{example.com/fpga: {amount}}}}}}}]}}\n"
    )
    words = ["preview", "-f", "pod.yaml", "--policies", "policies.yaml", "--fail-on", "unknown"]
    words = [str(tmp_path / each) if each.endswith(".yaml") else each for each in words]
    decides = amount == "0"
    for plugins, code in (("", 2 * decides), (EXTENDED, int(decides)), ("none", 0)):
        found = CliRunner().invoke(fairlead, [*words, *(["--plugins", plugins] * bool(plugins))])
        assert found.exit_code == code, found.output
        assert ("unknown: the API server may run" in found.output) == (decides and not plugins)


def test_an_annotation_and_a_flavor_that_are_not_read_leave_the_answer_unknown(
    tmp_path: Path,
) -> None:
    """What they give a pod is not its author's, and the note names what to give."""
    (tmp_path / "policies.yaml").write_text(
        FILES["policies.yaml"].partition("spec:")[0]
        + "spec: {requirements: {allowedTolerations: {patterns: [{key: team}]}}}"
    )
    labels = {"fairlead.dev/run": "r", "kueue.x-k8s.io/podset": "main"}
    container = {"name": "m", "image": "x"}
    written = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "g", "labels": labels},
        "spec": {
            "containers": [container],
            "nodeSelector": {"pool": "a"},
            "tolerations": [{"key": "nsk", "operator": "Exists"}],
        },
    }
    (tmp_path / "pod.json").write_text(json.dumps(written))

    def unknown(*objects: dict[str, Any], plugins: str = RESTRICTION) -> str:
        (tmp_path / "c.json").write_text(
            json.dumps({"kind": "List", "items": [*objects], "apiVersion": "v1"})
        )
        words = ("preview", "-f", "pod.json", "--policies", "policies.yaml", "-o", "text")
        found = CliRunner().invoke(
            fairlead,
            [
                *(str(tmp_path / each) if "." in each else each for each in words),
                *("--plugins", plugins, "--fail-on", "unknown"),
                *("--namespaces", str(tmp_path / "c.json")),
            ],
        )
        return found.stderr

    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "g"}}
    keeping = {**space, "metadata": {"name": "g", "labels": {"fairlead.dev/kueue": "keep"}}}
    spec = {"nodeLabels": {"pool": "a"}}
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
        "spec": spec,
    }
    mentions(unknown(flavor), "annotation of namespace g", "give Namespace g with -f")
    assert "unknown" not in unknown(flavor, plugins="none")
    assert "unknown" not in unknown(space)
    mentions(unknown(keeping), "ResourceFlavor of Kueue", "give ResourceFlavors with -f")
    assert "unknown" not in unknown(keeping, flavor)


def test_a_plugin_that_runs_with_an_annotation_that_is_not_read_may_open_any_node(
    folder: Path,
) -> None:
    """So no count of nodes is certain."""
    found = ask(folder, "explain", "--plugins", RESTRICTION)
    mentions(found.stderr, "adds tolerations by an annotation of the namespace", "the Namespace")
    assert "annotation" not in ask(folder, "explain", "--plugins", "none").stderr


POOL_A = """
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {fairlead.dev/run: r}}
spec:
  containers: [{name: m, image: x}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandboxed}
handler: h
scheduling: {nodeSelector: {pool: b}}
"""
SANDBOXED = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: sandboxed}
spec: {defaults: {runtimeClassName: sandboxed}}
"""


@pytest.mark.parametrize("command", ["preview", "explain"])
def test_what_the_second_call_warns_of_is_said_of_files_too(tmp_path: Path, command: str) -> None:
    """A policy's RuntimeClass contradicts the pod's own affinity, once the plugin has merged it."""
    (tmp_path / "pods.yaml").write_text(POOL_A)
    (tmp_path / "policies.yaml").write_text(SANDBOXED)
    options = ["-f", str(tmp_path / "pods.yaml"), "--policies", str(tmp_path / "policies.yaml")]
    done = CliRunner().invoke(fairlead, [command, *options])
    assert done.exit_code == 0, done.output
    mentions(done.output, "no node meets the pod's own settings")
