"""The control plane's own certificates."""

from __future__ import annotations

import csv
import datetime
import stat
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from tests.fast_yaml import load_yaml
from webhook.sandbox.credentials import TOKENS, write_credentials, write_kubeconfig

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def test_the_administrator_has_a_certificate(tmp_path: Path) -> None:
    """Its CN is the user, its O the group that may do everything."""
    write_credentials(tmp_path, NOW)
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    certificate = x509.load_pem_x509_certificate((tmp_path / "admin.crt").read_bytes())
    certificate.verify_directly_issued_by(authority)
    (user,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    (group,) = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert (user.value, group.value) == ("fairlead-admin", "system:masters")
    assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc


def test_each_token_is_of_the_user_that_kubernetes_expects(tmp_path: Path) -> None:
    """A component's user is the one that the bootstrap roles are bound to; tokens differ."""
    write_credentials(tmp_path, NOW)
    with (tmp_path / TOKENS).open(newline="") as file:
        users = {token: (user, group) for token, user, _, group in csv.reader(file)}
    names = ("admin", "kube-scheduler", "kube-controller-manager", "kwok")
    accounts = "system:serviceaccounts,system:serviceaccounts:fairlead-system"
    programs = ("fairlead-controller", "fairlead-webhook")
    assert [users.pop((tmp_path / f"{name}.token").read_text()) for name in programs] == [
        (f"system:serviceaccount:fairlead-system:{name}", accounts) for name in programs
    ]
    assert [users.pop((tmp_path / f"{name}.token").read_text()) for name in names] == [
        ("fairlead-admin", "system:masters"),
        ("system:kube-scheduler", ""),
        ("system:kube-controller-manager", ""),
        ("kwok", "system:masters"),
    ]
    assert not users


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
    write_kubeconfig(tmp_path / "other", "https://127.0.0.1:1", tmp_path, "kwok")
    secret = [*tmp_path.glob("*.key"), *tmp_path.glob("*.token"), tmp_path / TOKENS]
    for path in [*secret, tmp_path / "config", tmp_path / "other"]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_kubeconfig_is_whole_in_itself(tmp_path: Path) -> None:
    """It names no other file, so that it can be copied anywhere."""
    write_credentials(tmp_path, NOW)
    write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", tmp_path, "admin")
    text = (tmp_path / "config").read_text()
    assert str(tmp_path) not in text
    document = load_yaml(text)
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert document["current-context"] == document["contexts"][0]["name"]
