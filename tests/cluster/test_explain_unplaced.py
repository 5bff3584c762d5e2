"""`fairlead explain` of live objects in a cluster without Fairlead."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import Space
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead

POLICY = policy_text("pool", "match: {roles: [worker]}", "defaults: {nodeSelector: {pool: b}}")


def test_a_pod_without_a_stamp_says_why(module_space: Space, tmp_path: Path) -> None:
    """Of a pod of a run that no policy was applied to it; of any other that none would be."""
    space = module_space
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICY)

    def explain(name: str) -> tuple[int, str]:
        where = ("--kubeconfig", str(space.plane.kubeconfig), "-n", space.name)
        command = ["explain", "pod", name, "--policies", str(policies), *where]
        done = CliRunner().invoke(fairlead, command)
        return done.exit_code, done.stdout

    space.create(pod("early", labels={names.RUN: "r", names.ROLE: "worker"}))
    space.create(pod("other", labels={"app": "x"}))
    code, early = explain("early")
    assert code == 1
    mentions(early, "no policy was applied", "no stamp", "not installed")
    code, other = explain("other")
    assert code == 0
    assert "not part of a run" in other
