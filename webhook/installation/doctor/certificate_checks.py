"""Checks of certificates: their validity, and whether the API server trusts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certs.bundle import certificates as read_bundle
from certs.bundle import signer
from certs.errors import CertificateError
from certs.issue import names_of
from certs.kept import BUNDLE, CERTIFICATE
from certs.life import renewal_time
from certs.pair import read_certificate
from webhook import names
from webhook.installation.doctor.cluster_state import Finding, ReadKind, check, error, warning
from webhook.interception import read_ca_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cryptography import x509

    from webhook.installation.doctor.cluster_state import ClusterState

_SECRET: Final = f"Secret {names.NAMESPACE}/{names.SERVING_SECRET}"
# The one name that the API server checks (client-go's webhook resolver).
SERVER_NAME: Final = f"{names.WEBHOOK}.{names.NAMESPACE}.svc"


class _Cures(NamedTuple):
    """Cures, by what manages the certificates: its name, how to renew, where to read why."""

    keeper: str
    renew: str
    why: str


_OWN: Final = _Cures(
    "the controller",
    "fairlead certs rotate",
    f"kubectl -n {names.NAMESPACE} logs deployment/{names.CONTROLLER} | grep certificate",
)
_CERT_MANAGER: Final = _Cures(
    "cert-manager",
    f"cmctl -n {names.NAMESPACE} renew {names.WEBHOOK}",
    f"kubectl -n {names.NAMESPACE} describe certificates,certificaterequests",
)


def _cures(state: ClusterState) -> _Cures:
    return _CERT_MANAGER if state.by_cert_manager else _OWN


@check("certificates", needs=ReadKind.SERVING)
def certificates(state: ClusterState) -> Iterator[Finding]:
    """Check that the serving certificate is readable, and valid for its name and long enough."""
    if not state.in_cluster:
        return
    cures = _cures(state)
    if state.serving is None:
        yield error(f"there is no {_SECRET}: the webhook has nothing to serve with", cures.why)
        return
    try:
        leaf = read_certificate(state.serving.get(CERTIFICATE, b""))
    except CertificateError as problem:
        yield error(
            f"{_SECRET}: {problem}",
            f"kubectl -n {names.NAMESPACE} delete secret {names.SERVING_SECRET}: "
            f"{cures.keeper} creates it again",
        )
        return
    yield from _life("the serving certificate", leaf, state)
    if SERVER_NAME not in names_of(leaf):
        yield error(
            f"the serving certificate is not for {SERVER_NAME}, which the API server checks",
            cures.renew,
        )
    bundle = read_bundle(state.serving.get(BUNDLE, b""))
    if bundle and signer(leaf, bundle) is None:
        yield error(
            "none of the authorities in its Secret signed the serving certificate",
            cures.renew,
        )
    for authority in bundle:
        yield from _life(f"the authority {authority.subject.rfc4514_string()}", authority, state)


@check("trust", ReadKind.POD_RULES, ReadKind.JUDGING, ReadKind.SERVING)
def trust(state: ClusterState) -> Iterator[Finding]:
    """Check that all entries have one caBundle, which verifies the certificate."""
    cures = _cures(state)
    entries = [*state.entries, *state.judging_entries]
    behind = [each for each in entries if "service" in each["clientConfig"]]
    published: list[Mapping[str, Any]] = []
    for entry in behind:
        if not entry["clientConfig"].get("caBundle"):
            yield error(
                f"{entry['name']} has no caBundle: the API server cannot verify the webhook",
                f"{cures.keeper} writes it within seconds: {cures.why}",
            )
        else:
            published.append(entry)
    if len(set(map(read_ca_bundle, published))) > 1:
        yield warning(
            f"the caBundles of {', '.join(each['name'] for each in published)} differ",
            f"{cures.keeper} writes one to all within seconds: {cures.why}",
        )
    try:
        leaf = read_certificate((state.serving or {}).get(CERTIFICATE, b""))
    except CertificateError:
        return
    for entry in published:
        if signer(leaf, read_bundle(read_ca_bundle(entry))) is None:
            yield error(
                f"the caBundle of {entry['name']} does not verify the serving certificate",
                f"{cures.keeper} writes it again within seconds: {cures.why}",
            )


def _life(what: str, certificate: x509.Certificate, state: ClusterState) -> Iterator[Finding]:
    cures, end = _cures(state), certificate.not_valid_after_utc
    begin = certificate.not_valid_before_utc
    if state.now >= end:
        yield error(f"{what} expired on {end:%Y-%m-%d %H:%M} UTC", f"{cures.renew}; {cures.why}")
    elif state.now < begin:
        yield error(
            f"{what} is not valid before {begin:%Y-%m-%d %H:%M} UTC: a clock is wrong",
            f"check the clocks of the nodes, then {cures.renew}",
        )
    elif state.now > renewal_time(certificate) + (end - begin) / 10:
        yield warning(
            f"{what} expires on {end:%Y-%m-%d %H:%M} UTC, and should have been renewed by now",
            cures.why,
        )
