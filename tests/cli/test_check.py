"""`fairlead check` says everything that is wrong with policies, where, and how it ends."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.files import POLICIES, Files
from tests.policy_tests.writing import CLASS, policy
from tests.wording import Wording, line_with, mentions
from webhook.cli import check_report
from webhook.cli.check import command
from webhook.errors import UnreadableInput
from webhook.judgement.set_judgement import load_served
from webhook.policy.policy_documents import parse

WARNED = policy("wide", "defaults: {tolerations: [{operator: Exists}]}")
LOST = policy("lost", "overrides: {nodeSelector: {pool: nowhere}}")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A folder with a class and a policy in which nothing is wrong."""
    return Files(tmp_path, command)


def test_good_policies_are_counted(files: Files, wording: Wording) -> None:
    """One line, and exit code 0."""
    result = files.run(files.folder / "policies.yaml")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    mentions(line, "1 policy", "1 class", "hash", "no errors", "no warnings")
    wording(re.sub(r"\b[0-9a-f]{16}\b", "HASH", line))


def test_every_error_has_its_line(files: Files, wording: Wording) -> None:
    """File, line, column, field and value; exit code 1."""
    text = POLICIES.replace("Constrain", "constrain").replace("roles", "rolls")
    bad = files.write("bad.yaml", text)
    result = files.run(bad)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{bad}:9:")
    mentions(lines[0], "rolls", "'roles'")
    mentions(lines[1], f"{bad}:9:", "'constrain'", "Constrain", "Prevent", "Prefer", "Allow")
    mentions(lines[-1], "1 file", "2 errors", "no warnings")
    wording(result.stdout, {files.folder: "DIR"})


def test_warnings_alone_fail_only_with_strict(files: Files, wording: Wording) -> None:
    """Exit code 0, with --strict 1."""
    wide = files.write("wide.yaml", WARNED)
    result = files.run(wide)
    assert result.exit_code == 0
    warning, _, count = result.stdout.splitlines()
    mentions(warning, f"{wide}:4:", ": warning: spec.defaults.tolerations[0]: ", "every taint")
    mentions(count, "1 policy", "no errors", "1 warning")
    wording(warning, {files.folder: "DIR"})
    assert files.run(wide, "--strict").exit_code == 1


def test_several_paths_are_one_set(files: Files) -> None:
    """A class of one file, named in another."""
    user = policy("user", "overrides: {capacity: [{class: spot, mode: Allow}]}")
    path = files.write("user.yaml", user)
    assert files.run(path).exit_code == 1
    assert files.run(path, files.folder / "policies.yaml").exit_code == 0


def test_a_folder_is_read_and_so_is_standard_input(tmp_path: Path) -> None:
    """As kubectl's -f has it."""
    files = Files(tmp_path, command)
    (tmp_path / "nodes.yaml").unlink()
    assert files.run(tmp_path).stdout == files.run("-", stdin=POLICIES).stdout


def test_with_nodes_it_says_what_leaves_none(files: Files, wording: Wording) -> None:
    """The concern at its place in the file, a table of how many are left, and exit code 1."""
    lost = files.write("lost.yaml", LOST)
    result = files.run(lost, files.folder / "policies.yaml", "--nodes", files.folder / "nodes.yaml")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    field = "spec.overrides.nodeSelector.pool:"
    dropped, alone = lines[:2]
    assert dropped.startswith(f"{lost}:4:41: warning: {field} ")
    mentions(dropped, "dropped", "'workers-on-spot'", "no node")
    assert alone.startswith(f"{lost}:4:41: {field} ")
    mentions(alone, "pool=nowhere", "none of the 3 nodes")
    wording("\n".join(lines[:2]), {files.folder: "DIR"})
    assert lines[3:7] == [
        "        of 3 nodes       chosen  tolerated",
        "class   spot                  2          2",
        "policy  workers-on-spot       2          2",
        "policy  lost                  0          0",
    ]


def test_nodes_of_a_runtime_class_are_unknown(files: Files, wording: Wording) -> None:
    """It adds labels and tolerations that are not read; the policy is not said to have nodes."""
    path = files.write("p.yaml", policy("sandboxed", "defaults: {runtimeClassName: gvisor}"))
    result = files.run(path, "--nodes", files.folder / "nodes.yaml")
    note = line_with(result.stderr.splitlines(), "policy sandboxed")
    mentions(note, "unknown", "RuntimeClass gvisor", "not read")
    row = line_with(result.stdout.splitlines(), "policy sandboxed")
    assert row.split()[:4] == ["policy", "sandboxed", "all", "?"]
    wording(f"{note}\n{row}")


def test_nodes_that_are_made_on_demand_are_not_missed(files: Files, wording: Wording) -> None:
    """It says who makes them; even --strict passes."""
    made = CLASS.replace("{nodes:", "{autoscaled: true, nodes:").replace("pool: spot", "pool: new")
    path = files.folder / "made.yaml"
    path.write_text(made + policy("p", "overrides: {capacity: [{class: spot, mode: Constrain}]}"))
    result = files.run(path, "--nodes", files.folder / "nodes.yaml", "--strict")
    assert result.exit_code == 0, result.stdout
    on_demand = [line for line in result.stdout.splitlines() if "on demand" in line]
    assert len(on_demand) == 2
    assert all("class spot" in line for line in on_demand)
    wording("\n".join(on_demand))


def test_nodes_that_leave_all_policies_alone_change_nothing(files: Files) -> None:
    """Exit code 0."""
    result = files.run(files.folder / "policies.yaml", "--nodes", files.folder / "nodes.yaml")
    assert result.exit_code == 0


def test_programs_get_everything(files: Files) -> None:
    """Findings field by field, names, the whole hash, and each part's nodes."""
    lost = files.write("lost.yaml", LOST)
    nodes = files.folder / "nodes.yaml"
    found = json.loads(files.run(lost, "--nodes", nodes, "-o", "json").stdout)
    assert (found["errors"], found["warnings"], found["policies"]) == (1, 0, ["lost"])
    assert found["findings"][0]["path"] == "spec.overrides.nodeSelector.pool"
    assert found["nodes"]["total"] == 3
    assert found["nodes"]["reach"][0]["part"] == "overrides"
    assert len(found["hash"]) == 64
    broken = files.write("broken.yaml", "kind: [")
    found = json.loads(files.run(broken, "-o", "json").stdout)
    assert (found["policies"], found["hash"], found["errors"]) == (None, None, 1)


def test_no_policy_at_all_is_wrong_usage(tmp_path: Path, wording: Wording) -> None:
    """A path that is not there, or one without policies, would else check nothing."""
    (tmp_path / "empty").mkdir()
    files = Files(tmp_path, command)
    result = files.run(tmp_path / "empty")
    assert result.exit_code == 2
    error = result.stderr.partition("Error: ")[2]
    mentions(error, tmp_path / "empty", "no policies", "no classes")
    wording(error, {tmp_path: "TMP"})
    assert files.run(files.write("empty.yaml", "# later\n")).exit_code == 2
    assert files.run(tmp_path / "nothing").exit_code == 2
    assert files.run().exit_code == 2


def test_objects_that_are_not_nodes_are_named(files: Files, wording: Wording) -> None:
    """The file of nodes is read as strictly as any other."""
    path = files.folder / "policies.yaml"
    for text, facts in (
        ("kind: Pod\nmetadata: {name: a}", [":1:1: ", "Node"]),
        ("kind: Node\nmetadata: {name: a}\nspec: {taints: x}", ["Node/a", "spec.taints", "list"]),
        ("", ["no nodes"]),
    ):
        nodes = files.write("nodes.yaml", text)
        result = files.run(path, "--nodes", nodes)
        assert isinstance(result.exception, UnreadableInput)
        mentions(str(result.exception), nodes, *facts)
        wording(str(result.exception), {files.folder: "DIR"})


def test_findings_about_combined_policies_have_a_place(tmp_path: Path, wording: Wording) -> None:
    """With line and column, as a warning; --strict fails for it."""
    files = Files(tmp_path, command)
    first = policy("first", "priority: 1, overrides: {schedulerName: own}")
    second = policy("second", "overrides: {schedulerName: other}")
    path = files.write("both.yaml", f"{first}---\n{second}")
    result = files.run(path)
    assert result.exit_code == 0
    warning = line_with(result.stdout, ": warning: spec.overrides.schedulerName: ", "'first'")
    mentions(warning, f"{path}:10:", "no pod")
    wording(warning, {tmp_path: "TMP"})
    assert files.run(path, "--strict").exit_code == 1


ZONES = policy("one", "requirements: {nodeSelector: {zone: a}}") + policy(
    "two", "requirements: {nodeSelector: {zone: b}}"
)


def test_a_set_that_rejects_every_pod_is_an_error(files: Files, wording: Wording) -> None:
    """With what each policy requires, and exit code 1."""
    path = files.write("zones.yaml", ZONES)
    result = files.run(path)
    assert result.exit_code == 1
    mentions(result.stdout, "zones.yaml:9:44", "every run", "one requires 'a'", "two requires 'b'")
    mentions(result.stdout, "1 error, no warnings")
    wording(result.stdout.splitlines()[0], {files.folder: "DIR"})
    (found,) = json.loads(files.run(path, "-o", "json").stdout)["findings"]
    assert (found["kind"], found["severity"]) == ("every-pod-rejected", "error")


def test_a_setting_with_which_the_api_server_refuses_pods_is_an_error(files: Files) -> None:
    """Whatever the cluster; exit code 1. A set that is stored with it serves as before."""
    cost = "annotations: {controller.kubernetes.io/pod-deletion-cost: high}"
    text = policy("stops", f"defaults: {{{cost}}}")
    path = files.write("stops.yaml", text)
    result = files.run(path)
    assert (result.exit_code, result.stderr) == (1, "")
    mentions(result.stdout, "stops.yaml:4:", "spec.defaults.", "API server refuses pods", "'high'")
    (found,) = json.loads(files.run(path, "-o", "json").stdout)["findings"]
    assert (found["kind"], found["severity"]) == ("refused-pods", "error")
    (fault,) = load_served(parse({"stops.yaml": text.encode()})).faults
    assert fault.is_fault


def test_a_class_that_may_be_missing_is_reported(files: Files, wording: Wording) -> None:
    """No file says which there are; two are in every cluster."""
    named = "priorityClassName: low, runtimeClassName: gvisor"
    result = files.run(files.write("low.yaml", policy("low", f"defaults: {{{named}}}")))
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    mentions(first, "PriorityClass low", "unknown", "--nodes cluster")
    mentions(second, "RuntimeClass gvisor")
    wording(result.stderr)
    everywhere = policy("critical", "defaults: {priorityClassName: system-node-critical}")
    assert files.run(files.write("critical.yaml", everywhere)).stderr == ""


def test_a_class_that_the_cluster_does_not_have_is_an_error(wording: Wording) -> None:
    """At its place, with the one that may be meant."""
    text = policy("low", "overrides: {priorityClassName: lwo, runtimeClassName: gvisor}")
    documents = parse({"low.yaml": text.encode()})
    there: dict[str, dict[str, Any]] = {
        "PriorityClass": {"low": {}, "high": {}},
        "RuntimeClass": {"gvisor": {}},
    }
    given = check_report.CheckInput(["low.yaml"], documents, None, there)
    checked = check_report.check(given, datetime.now(UTC))
    assert checked is not None
    (found,) = checked.findings
    assert (checked.errors, found.line, found.path) == (1, 4, "spec.overrides.priorityClassName")
    mentions(found.message, "PriorityClass", "'lwo'", "'low'")
    wording(found.message)
    assert not [*check_report.notes(given, checked)]


def test_many_warnings_of_one_kind_become_one(files: Files, wording: Wording) -> None:
    """The first, with how many more there are, and where."""
    matches = ("roles: [worker]", "kinds: [job]", "frameworks: [mpi]", "resources: [cpu]")
    text = "".join(
        policy(f"p{at}", f"match: {{{match}}}, overrides: {{schedulerName: s{at}}}")
        for at, match in enumerate((*matches, "volumes: [nfs]", "coordinator: true"))
    )
    result = files.run(files.write("many.yaml", text))
    assert result.exit_code == 0
    first, _, count = result.stdout.splitlines()
    mentions(first, "equal priority", "4 more warnings like this", "many.yaml:14")
    mentions(count, "1 warning")
    wording(first, {files.folder: "DIR"})


def test_with_nodes_policies_are_held_against_them_together(files: Files) -> None:
    """Each leaves nodes; a pod that both match has none."""
    steady = policy(
        "books", "match: {kinds: [notebook]}, overrides: {nodeSelector: {pool: steady}}"
    )
    spot = policy("zone", "match: {resources: [gpu/x]}, overrides: {nodeSelector: {lifecycle: x}}")
    nodes = files.write(
        "mixed.yaml",
        "kind: List\nitems:\n"
        "- {kind: Node, metadata: {name: a, labels: {pool: steady}}}\n"
        "- {kind: Node, metadata: {name: b, labels: {lifecycle: x}}}\n",
    )
    result = files.run(files.write("pair.yaml", steady + spot), "--nodes", nodes)
    assert result.exit_code == 0
    mentions(result.stdout, "none of the 2 nodes together with policy 'books'", "requesting gpu/x")


def test_what_a_split_does_not_do_is_said(files: Files, wording: Wording) -> None:
    """As a note, and no warning: both are as they should be."""
    shares = "{class: spot, percent: 70}, {class: spot, mode: Prevent}"
    file = files.write("split.yaml", policy("p", f"overrides: {{split: [{shares}]}}"))
    result = files.run(file, files.folder / "policies.yaml")
    assert result.exit_code == 0, result.output
    mentions(result.stderr, "policy p", "restartScope: Run", "fairlead.dev/replicas")
    mentions(result.stdout, "no warnings")
    wording(result.stderr)


def test_what_a_fallback_does_not_do_is_said(files: Files, wording: Wording) -> None:
    """Of pods that have no history."""
    rule = "{class: spot, mode: Constrain, fallback: {afterPending: 20m}}"
    file = files.write("fallback.yaml", policy("p", f"overrides: {{capacity: [{rule}]}}"))
    result = files.run(file, files.folder / "policies.yaml")
    assert result.exit_code == 0, result.output
    mentions(result.stderr, "policy p: fallback", "no history")
    wording(result.stderr)
