"""The control plane's own certificates."""

from __future__ import annotations

import datetime
import stat
from typing import TYPE_CHECKING

import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from webhook.sandbox.credentials import write_credentials, write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def test_clients_are_who_kubernetes_expects(tmp_path: Path) -> None:
    """A component's CN is the user that the bootstrap roles are bound to."""
    write_credentials(tmp_path, NOW)
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    for name, user, groups in (
        ("admin", "fairlead-admin", ["system:masters"]),
        ("kube-scheduler", "system:kube-scheduler", []),
        ("kube-controller-manager", "system:kube-controller-manager", []),
    ):
        certificate = x509.load_pem_x509_certificate((tmp_path / f"{name}.crt").read_bytes())
        certificate.verify_directly_issued_by(authority)
        subject = certificate.subject
        assert [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [
            user
        ]
        organizations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        assert [each.value for each in organizations] == groups
        assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc


def test_the_front_proxy_has_an_authority_of_its_own(tmp_path: Path) -> None:
    """Else any client's certificate could pass for the aggregator's, and name any user."""
    write_credentials(tmp_path, NOW)
    issuers = {
        name: x509.load_pem_x509_certificate((tmp_path / f"{name}.crt").read_bytes()).issuer
        for name in ("front-proxy", "admin")
    }
    assert issuers["front-proxy"] != issuers["admin"]


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    """Keys and kubeconfigs, which hold keys, are readable by nobody else."""
    write_credentials(tmp_path, NOW)
    write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", tmp_path, "admin")
    for path in [*tmp_path.glob("*.key"), tmp_path / "config"]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_is_whole_in_itself(tmp_path: Path) -> None:
    """It names no other file, so that it can be copied anywhere."""
    write_credentials(tmp_path, NOW)
    write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", tmp_path, "admin")
    text = (tmp_path / "config").read_text()
    assert str(tmp_path) not in text
    document = yaml.safe_load(text)
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert document["current-context"] == document["contexts"][0]["name"]
