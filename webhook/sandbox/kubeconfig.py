"""A kubeconfig for one client of the sandbox, whole in one file."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from pathlib import Path

# Under these names they show in `kubectl config get-contexts`.
_CLUSTER = "fairlead-sandbox"


def kubeconfig(server: str, authority: bytes, certificate: bytes, key: bytes) -> str:
    """The YAML text of a kubeconfig that carries its PEM credentials inside itself.

    So it can be copied anywhere, and read by any client library.
    """
    user = {"client-certificate-data": _text(certificate), "client-key-data": _text(key)}
    cluster = {"server": server, "certificate-authority-data": _text(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CLUSTER, "cluster": cluster}],
        "users": [{"name": _CLUSTER, "user": user}],
        "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": _CLUSTER}}],
        "current-context": _CLUSTER,
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


def write_kubeconfig(path: Path, server: str, credentials: Path, name: str) -> None:
    """Write a kubeconfig for the client whose pair <name>.crt and .key lies in `credentials`."""
    path.touch(mode=0o600)
    path.write_text(
        kubeconfig(
            server,
            (credentials / "ca.crt").read_bytes(),
            (credentials / f"{name}.crt").read_bytes(),
            (credentials / f"{name}.key").read_bytes(),
        )
    )


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
