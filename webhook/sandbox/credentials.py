"""Create certificates and keys of a sandbox."""

from __future__ import annotations

import base64
import datetime
import secrets
from typing import TYPE_CHECKING, Final

import yaml
from cryptography.hazmat.primitives import serialization

from certs.authority import new_authority, new_key
from certs.issue import Names, issue_client, issue_server
from webhook.names import CONTROLLER, CONTROLLER_USER, NAMESPACE, WEBHOOK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric import ec

TOKENS: Final = "tokens.csv"
ADMIN_TOKEN: Final = "admin.token"  # noqa: S105 (a file name)
_LIFETIME: Final = datetime.timedelta(days=365)

_SERVING_NAMES: Final = Names(
    dns=("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    addresses=("127.0.0.1",),
)
_ACCOUNTS: Final = f"system:serviceaccounts,system:serviceaccounts:{NAMESPACE}"
# The user and the groups of each client that sends a token. The API server verifies a client
# certificate again for each request, which is a seventh of its processor time.
_CLIENTS: Final = {
    "admin": ("fairlead-admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
    # As in an installation: their rights are those of sandbox/rights.py, and the webhook knows the
    # pods of Fairlead's controller by its user.
    CONTROLLER: (CONTROLLER_USER, _ACCOUNTS),
    WEBHOOK: (f"system:serviceaccount:{NAMESPACE}:{WEBHOOK}", _ACCOUNTS),
}

# Under these names they show in `kubectl config get-contexts`.
_CLUSTER = "fairlead-sandbox"


def write_credentials(directory: Path, now: datetime.datetime) -> None:
    """Write every credential of a control plane into the directory.

    Pairs <name>.crt and <name>.key: ca, front-proxy-ca, and issued by them serving (for 127.0.0.1,
    localhost and the Service kubernetes), admin and front-proxy; sa.key and sa.pub sign service
    account tokens. All last a year. <name>.token: the bearer tokens of admin,
    kube-controller-manager, kube-scheduler, kwok, Fairlead's controller and webhook; tokens.csv has
    them for the API server. Keys and tokens are readable by the owner only.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = new_authority("fairlead-sandbox", now, lifetime=_LIFETIME)
    front = new_authority("fairlead-sandbox-front-proxy", now, lifetime=_LIFETIME)
    accounts = new_key()
    user, group = _CLIENTS["admin"]
    pairs = {
        "ca": authority,
        "front-proxy-ca": front,
        "serving": issue_server(
            authority, "kube-apiserver", _SERVING_NAMES, now, lifetime=_LIFETIME
        ),
        "admin": issue_client(authority, user, now, group=group, lifetime=_LIFETIME),
        "front-proxy": issue_client(front, "front-proxy", now, lifetime=_LIFETIME),
    }
    for name, pair in pairs.items():
        (directory / f"{name}.crt").write_bytes(pair.certificate)
        _write_key(directory / f"{name}.key", pair.private_key)
    _write_key(directory / "sa.key", _private(accounts))
    tokens = {name: secrets.token_urlsafe(32) for name in _CLIENTS}
    for name, token in tokens.items():
        _write_key(directory / f"{name}.token", token.encode())
    rows = [f'{tokens[name]},{user},{user},"{group}"' for name, (user, group) in _CLIENTS.items()]
    _write_key(directory / TOKENS, "\n".join(rows).encode())
    (directory / "sa.pub").write_bytes(
        accounts.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_key(path: Path, pem: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(pem)


def kubeconfig(server: str, authority: bytes, user: Mapping[str, str]) -> str:
    """Return the YAML text of a kubeconfig that carries its credentials inside itself.

    So it can be copied anywhere, and read by any client library. `user` is the kubeconfig's own
    mapping of a user.
    """
    cluster = {"server": server, "certificate-authority-data": _text(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _CLUSTER, "cluster": cluster}],
        "users": [{"name": _CLUSTER, "user": dict(user)}],
        "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": _CLUSTER}}],
        "current-context": _CLUSTER,
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


def write_kubeconfig(path: Path, server: str, credentials: Path, name: str) -> None:
    """Write a kubeconfig for a client, with its certificate if it has one, else its token."""
    certificate = credentials / f"{name}.crt"
    if certificate.exists():
        key = (credentials / f"{name}.key").read_bytes()
        user = {
            "client-certificate-data": _text(certificate.read_bytes()),
            "client-key-data": _text(key),
        }
    else:
        user = {"token": (credentials / f"{name}.token").read_text()}
    path.touch(mode=0o600)
    path.write_text(kubeconfig(server, (credentials / "ca.crt").read_bytes(), user))


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
