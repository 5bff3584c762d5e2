"""Certificates and keys of one sandbox, of its own authorities, in files."""

from __future__ import annotations

import base64
import datetime
from typing import TYPE_CHECKING, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import encode, key_usage, new_authority, new_key, new_serial_number
from certs.issue import Names, issue_server
from certs.pair import read_private_key

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric import ec

    from certs.pair import Pair

_LIFETIME: Final = datetime.timedelta(days=365)
# A clock that was set back a little must not make a fresh certificate invalid.
_BACKDATED: Final = datetime.timedelta(hours=1)

_SERVING_NAMES: Final = Names(
    dns=("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    addresses=("127.0.0.1",),
)
# Under these names they show in `kubectl config get-contexts`.
_CLUSTER = "fairlead-sandbox"


def write_credentials(directory: Path, now: datetime.datetime) -> None:
    """Write every credential of a control plane into the directory.

    Pairs <name>.crt and <name>.key: ca, front-proxy-ca, and issued by them serving (for 127.0.0.1,
    localhost and the Service kubernetes), admin, kube-controller-manager, kube-scheduler, kwok and
    front-proxy; sa.key and sa.pub sign service account tokens. All last a year. Keys are readable
    by the owner only.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = new_authority("fairlead-sandbox", now, lifetime=_LIFETIME)
    front = new_authority("fairlead-sandbox-front-proxy", now, lifetime=_LIFETIME)
    accounts = new_key()
    pairs = {
        "ca": authority,
        "front-proxy-ca": front,
        "serving": issue_server(
            authority, "kube-apiserver", _SERVING_NAMES, now, lifetime=_LIFETIME
        ),
        "admin": _client(authority, "fairlead-admin", now, group="system:masters"),
        "kube-controller-manager": _client(authority, "system:kube-controller-manager", now),
        "kube-scheduler": _client(authority, "system:kube-scheduler", now),
        "kwok": _client(authority, "kwok", now, group="system:masters"),
        "front-proxy": _client(front, "front-proxy", now),
    }
    for name, pair in pairs.items():
        (directory / f"{name}.crt").write_bytes(pair.certificate)
        _write_key(directory / f"{name}.key", pair.private_key)
    _write_key(directory / "sa.key", _private(accounts))
    (directory / "sa.pub").write_bytes(
        accounts.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _client(
    authority: Pair, user: str, now: datetime.datetime, *, group: str | None = None
) -> Pair:
    """A client certificate, which tells the API server the user by CN and the group by O."""
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    key = new_key()
    signer = read_private_key(authority.private_key)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(attributes))
        .issuer_name(authority.check().subject)
        .public_key(key.public_key())
        .serial_number(new_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]  # an authority's key signs
    )
    return encode(certificate, key)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write_key(path: Path, pem: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(pem)


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
