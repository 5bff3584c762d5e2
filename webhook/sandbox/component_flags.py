"""The command-line flags of the control plane's components."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.sandbox.binaries import ALL
from webhook.sandbox.credentials import TOKENS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

STAGES: Final = Path(__file__).parent / "stages.yaml"
SERVICE_ADDRESSES: Final = "10.96.0.0/16"
POD_ADDRESSES: Final = "10.244.0.0/16"

# Names of the ports of a control plane: one for each component, and one for etcd's peers.
ETCD_PEER: Final = "etcd-peer"
PORTS: Final = (*ALL, ETCD_PEER)


@dataclass(frozen=True)
class Layout:
    """The folder of one control plane, and a port of 127.0.0.1 for each of PORTS."""

    directory: Path
    ports: Mapping[str, int]

    @property
    def credentials(self) -> Path:
        """The folder of write_credentials."""
        return self.directory / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.directory / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, one JSON document per line, if auditing is on."""
        return self.directory / "audit.log"

    @property
    def audit_policy(self) -> Path:
        """The audit policy file."""
        return self.directory / "audit-policy.yaml"

    def kubeconfig_of(self, component: str) -> Path:
        """Return the kubeconfig of a component, with its own identity."""
        return self.credentials / f"{component}.kubeconfig"

    def url(self, port: str, scheme: str = "https") -> str:
        """Return the address of one of PORTS."""
        return f"{scheme}://127.0.0.1:{self.ports[port]}"


def component_arguments(
    name: str, layout: Layout, components: Collection[str], *, audit: bool
) -> list[str]:
    """Return the flags of one component; `components` are all that will run."""
    if name == "kube-apiserver":
        return _api_server(layout, components, audit=audit)
    return _FLAGS[name](layout)


def _etcd(layout: Layout) -> list[str]:
    client, peer = layout.url("etcd", "http"), layout.url(ETCD_PEER, "http")
    return [
        f"--data-dir={layout.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        # The data is deleted with the sandbox, so fsync would only cost time.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _api_server(layout: Layout, components: Collection[str], *, audit: bool) -> list[str]:
    pki = layout.credentials
    arguments = [
        f"--etcd-servers={layout.url('etcd', 'http')}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={layout.ports['kube-apiserver']}",
        f"--tls-cert-file={pki / 'serving.crt'}",
        f"--tls-private-key-file={pki / 'serving.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--token-auth-file={pki / TOKENS}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        f"--service-cluster-ip-range={SERVICE_ADDRESSES}",
        # The Service `kubernetes` cannot have an endpoint on loopback.
        "--endpoint-reconciler-type=none",
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy.key'}",
        # Node names do not resolve; the nodes' address is loopback.
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
    ]
    if "kube-controller-manager" not in components:
        # No controller creates the service accounts that this plugin requires for every pod.
        arguments.append("--disable-admission-plugins=ServiceAccount")
    if audit:
        arguments += [
            f"--audit-log-path={layout.audit_log}",
            f"--audit-policy-file={layout.audit_policy}",
        ]
    return arguments


def _controller_manager(layout: Layout) -> list[str]:
    pki = layout.credentials
    return [
        *_client(layout, "kube-controller-manager"),
        # As in a real cluster: a webhook recognizes by the user which controller creates a pod.
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki / 'sa.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
    ]


def _client(layout: Layout, name: str = "kube-scheduler") -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig_of(name)}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[name]}",
        f"--tls-cert-file={layout.credentials / 'serving.crt'}",
        f"--tls-private-key-file={layout.credentials / 'serving.key'}",
        # No client-side rate limit: there is one client and one server.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def _kwok(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig_of('kwok')}",
        "--manage-all-nodes=true",
        # As kubelets do. Without leases, the node controller marks a node Unknown after 50 s.
        "--node-lease-duration-seconds=40",
        f"--config={STAGES}",
        f"--cidr={POD_ADDRESSES}",
        f"--server-address=127.0.0.1:{layout.ports['kwok']}",
    ]


_FLAGS: Final = {
    "etcd": _etcd,
    "kube-controller-manager": _controller_manager,
    "kube-scheduler": _client,
    "kwok": _kwok,
}
