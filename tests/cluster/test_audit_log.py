"""`fairlead audit` reads what a real API server wrote of pods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import NewNamespace, Space
from tests.eventually import eventually
from tests.wording import mentions
from webhook.cli.audit import command

pytest_plugins = ["tests.cluster.webhook_fixtures"]

MATCH = "match: {namespaceSelector: {matchLabels: {test: audit-log}}}"
POLICIES = policy_text(
    "tried", "enforcement: Audit", MATCH, "defaults: {nodeSelector: {pool: a}}"
) + policy_text(
    "strict",
    "enforcement: Audit",
    MATCH,
    "requirements: {nodeSelector: {kubernetes.io/arch: amd64}}",
)


def summed(lines: list[bytes], folder: Path) -> Result:
    """What the command says of a log of these lines."""
    log = folder / "audit.log"
    log.write_bytes(b"".join(lines))
    return CliRunner().invoke(command, ["--audit-log", str(log), "-o", "json"])


def logged(space: Space) -> list[bytes]:
    """The lines of the API server's audit log about this namespace."""
    lines = space.plane.layout.audit_log.read_bytes().splitlines(keepends=True)
    return [line for line in lines if space.name.encode() in line and line.endswith(b"\n")]


@pytest.mark.usefixtures("running")
def test_what_the_api_server_logged_is_summed_up(
    new_namespace: NewNamespace, tmp_path: Path
) -> None:
    """Of pods that were decided on; without their annotations, and of other verbs, no answer."""
    space = new_namespace({"test": "audit-log"})
    space.create(pod("fits"))
    space.create(pod("not", nodeSelector={"kubernetes.io/arch": "arm64"}))
    space.create(pod("other", labels={"app": "web"}))

    def creations() -> list[bytes]:
        return [line for line in logged(space) if b'"verb":"create"' in line]

    eventually("the creations are logged", lambda: len(creations()) >= 3)
    whole = summed(logged(space), tmp_path)
    assert whole.exit_code == 1
    found = json.loads(whole.stdout)
    assert found["log"]["decided"] == 2
    rows = {row["policy"]: (row["rejects"], row["changes"], row["same"]) for row in found["rows"]}
    assert rows == {"strict": (1, 1, 0), "tried": (0, 2, 0)}
    space.pods()
    others = [line for line in logged(space) if b'"verb":"create"' not in line]
    cut = [json.loads(line) | {"annotations": {}} for line in creations()]
    for lines, facts in (
        (others, ["none of the creation of a pod"]),
        ([json.dumps(each).encode() + b"\n" for each in cut], ["Fairlead evaluated none"]),
    ):
        refused = summed(lines, tmp_path)
        assert (refused.exit_code, refused.stdout) == (2, "")
        mentions(refused.stderr, *facts)
