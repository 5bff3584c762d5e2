"""What a policy under Audit leaves, and what the person at kubectl is told of the next apply."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cluster.manifests import Json, pod, policy_text, terms, within
from tests.cluster.spaces import NewNamespace, Running, Space, is_stamped, stamp
from webhook.cli.policy import audit

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = policy_text(
    "later-zone-b",
    "enforcement: Audit",
    "match: {namespaceSelector: {matchLabels: {test: audit}}}",
    "requirements: {nodeSelector: {topology.kubernetes.io/zone: europe-west4-b}}",
) + policy_text(
    "changes-much",
    "match: {namespaceSelector: {matchLabels: {test: apply}}}",
    "overrides:",
    "  nodeSelector: {pool: large}",
    "  tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]",
    "  affinity:",
    "    nodeAffinity:",
    "      requiredDuringSchedulingIgnoredDuringExecution:",
    "        nodeSelectorTerms:",
    "          - matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]",
)
ZONE = "topology.kubernetes.io/zone"
IN_A = {ZONE: "europe-west4-a"}


def create(space: Space, sent: Json) -> tuple[int, str]:
    """`kubectl create` the pod; the exit code, and what is on stderr."""
    done = space.kubectl.run("create", "-f", "-", stdin=json.dumps(sent))
    return done.returncode, done.stderr


def test_a_policy_under_audit_changes_nothing_and_is_recorded(
    running: Running, new_namespace: NewNamespace, tmp_path: Path
) -> None:
    """The audit log has what it would have done, the pod has nothing of it."""
    space = new_namespace({"test": "audit"})
    for name, own in (("refused", IN_A), ("placed", {})):
        assert create(space, pod(name, nodeSelector=own)) == (0, "")
    for seen in space.wait_for_pods(2):
        assert stamp(seen)["policies"] == {}
        assert "europe-west4-b" not in json.dumps(seen["spec"])
    (refused,) = space.audited("refused")
    report = json.loads(refused["pods-0.fairlead.dev/audit"])
    assert report["policies"] == ["later-zone-b"]
    assert "later-zone-b" in report["rejections"][0]
    (placed,) = space.audited("placed")
    report = json.loads(placed["pods-0.fairlead.dev/audit"])
    assert [operation["value"] for operation in report["patch"]] == [{ZONE: "europe-west4-b"}]
    for result in ("audit-rejects", "audit-changes"):
        assert running.metric("fairlead_decisions_total", result=result, policy="later-zone-b") == 1
    metrics = tmp_path / "metrics"
    metrics.write_bytes(running.metrics())
    summed = CliRunner().invoke(audit.command, ["--metrics", str(metrics), "-o", "json"])
    assert summed.exit_code == 1
    rows = [row for row in json.loads(summed.output)["rows"] if row["namespace"] == space.name]
    assert [(row["policy"], row["rejects"], row["changes"]) for row in rows] == [
        ("later-zone-b", 1, 1)
    ]


OWN_TOLERATION = [{"key": "gpu", "operator": "Exists"}]
BY_SERVER = ("--server-side", "--field-manager=somebody")


@pytest.mark.parametrize("options", [(), BY_SERVER], ids=["client-side", "server-side"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tolerations": OWN_TOLERATION},
        {"nodeSelector": {"pool": "small"}},
        {"nodeSelector": {"kubernetes.io/arch": "amd64"}},
        {"affinity": terms(within("kubernetes.io/arch", "amd64"))},
        {"schedulerName": "default-scheduler", "priority": 0},
    ],
    ids=["nothing", "tolerations", "overridden key", "added key", "affinity", "others"],
)
def test_a_pods_author_is_warned_exactly_if_the_next_apply_fails(
    new_namespace: NewNamespace, fields: Json, options: tuple[str, ...]
) -> None:
    """The API server lets almost nothing of a pod change, and kubectl sends what differs."""
    space = new_namespace({"test": "apply"})
    manifest = json.dumps(pod("p", **fields))
    first = space.kubectl.run("apply", *options, "-f", "-", stdin=manifest)
    assert first.returncode == 0
    assert is_stamped(space.pods()[0])
    warnings = [line for line in first.stderr.splitlines() if "applying this pod again" in line]
    again = space.kubectl.run("apply", *options, "-f", "-", stdin=manifest)
    assert len(warnings) == (again.returncode != 0), (first.stderr, again.stderr)
    if warnings:
        (field,) = fields
        assert f"spec.{field};" in warnings[0]


def test_a_pod_that_is_created_is_not_warned_of_applying(new_namespace: NewNamespace) -> None:
    """Whatever was changed in it."""
    space = new_namespace({"test": "apply"})
    assert create(space, pod("p", tolerations=OWN_TOLERATION)) == (0, "")
