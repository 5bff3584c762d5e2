"""The pages about installing, carried out in a cluster of the module's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.cluster.installed import PAGES, ROOT, Installed, commands, files, run
from webhook import names
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, Pool, Taint, read_pools

ACCOUNTS = (names.WEBHOOK, names.CONTROLLER)
# Every request of both accounts, and no other.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "users": [f"system:serviceaccount:{names.NAMESPACE}:{name}" for name in ACCOUNTS],
        },
        {"level": "None"},
    ],
}
# The nodes that the page's kustomization has Fairlead run on.
SYSTEM = Pool(
    name="system",
    count=3,
    capacity={"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
    zones=["europe-west4-a", "europe-west4-b", "europe-west4-c"],
    labels={"example.com/pool": "system"},
    taints=[Taint(key="example.com/pool", value="system", effect="NoSchedule")],
)


@pytest.fixture(scope="module")
def installed(
    binaries: Mapping[str, Path], kubectl_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """All commands of the pages have run, up to those that take it away again."""
    folder = tmp_path_factory.mktemp("install")
    for name in ("manifests", "policies"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "audit-policy.yaml").write_text(yaml.safe_dump(AUDIT_POLICY))
    page = "\n".join(each.read_text() for each in PAGES)
    for name, text in files(page).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    settings = Settings(
        pools=[*read_pools(SHIPPED_NODES), SYSTEM],
        extra_arguments={
            "kube-apiserver": [f"--audit-policy-file={folder / 'audit-policy.yaml'}"],
        },
        audit=True,
    )
    with ControlPlane(folder / "control-plane", binaries, settings) as plane:
        said = {
            command: run(command, folder, plane.kubeconfig, kubectl_path)
            for command in commands(page)
        }
        kubectl = Kubectl(kubectl_path, plane.kubeconfig, names.NAMESPACE)
        yield Installed(plane, folder, kubectl, said)
