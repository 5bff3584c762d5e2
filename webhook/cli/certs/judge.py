"""What is wrong with certificates, told from what may be seen of them: each with its cure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from certs.bundle import certificates, same, signer
from certs.life import renewal_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from cryptography import x509

    from webhook.cli.certs.sight import Sight

# A controller looks once a minute. This leaves one time to start.
OVERDUE: Final = timedelta(hours=1)
CERT_MANAGER: Final = "cert-manager.io/certificate-name"
_OF_PODS: Final = "MutatingWebhookConfiguration "
_KEEPER: Final = "Is a controller running with --certificates? Its log says why it does not"


def by_cert_manager(sight: Sight) -> bool:
    """Whether the leaf is cert-manager's: then there is no authority of ours."""
    metadata = (sight.serving.raw or {}).get("metadata") or {}
    return CERT_MANAGER in (metadata.get("annotations") or {})


def problems(sight: Sight, now: datetime) -> list[str]:
    """Everything that is wrong now. What may not be seen is not judged."""
    return [*_authority(sight, now), *_leaf(sight, now), *_published(sight)]


def _authority(sight: Sight, now: datetime) -> Iterator[str]:
    name = sight.installation.authority
    authority = sight.kept_authority
    if authority and authority.signing:
        yield from _life("the authority", authority.signing.check(), now)
    elif authority is None and not sight.authority.hidden and not by_cert_manager(sight):
        how = "cannot be read as an authority" if sight.authority.raw else "is not there"
        yield f"the Secret {name} {how}, and will be made anew. {_KEEPER}"


def _leaf(sight: Sight, now: datetime) -> Iterator[str]:
    name = sight.installation.serving
    serving = sight.kept_serving
    if serving is None:
        if not sight.serving.hidden:
            how = "holds no leaf with its key" if sight.serving.raw else "is not there"
            yield f"the Secret {name} {how}. {_KEEPER}"
        return
    leaf = serving.leaf.check()
    yield from _life("the leaf", leaf, now)
    if signer(leaf, certificates(serving.bundle)) is None:
        yield (
            f"the leaf is by none of the authorities beside it in the Secret {name}: new handshakes"
            " fail"
        )


def _life(what: str, certificate: x509.Certificate, now: datetime) -> Iterator[str]:
    if certificate.not_valid_after_utc <= now:
        yield f"{what} has expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    elif certificate.not_valid_before_utc > now:
        yield (
            f"{what} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC:"
            " compare the clocks of the nodes"
        )
    elif renewal_time(certificate) + OVERDUE < now:
        yield f"{what} should have been renewed by {renewal_time(certificate):%Y-%m-%d}. {_KEEPER}"


def _published(sight: Sight) -> Iterator[str]:
    # Without the validating one nothing fails: whether it is meant to be there, the doctor says.
    pods = {name: seen for name, seen in sight.configurations.items() if name.startswith(_OF_PODS)}
    for name, seen in pods.items():
        if seen.raw is None and not seen.hidden:
            yield f"there is no {name}: no pod is sent to the webhook"
    if not sight.published and all(seen.raw for seen in pods.values()):
        yield f"no webhook calls the Service {sight.installation.service} of this namespace"
    authority, serving = sight.kept_authority, sight.kept_serving
    wanted = authority.bundle if authority else serving.bundle if serving else b""
    for name, bundle in sight.published.items():
        if not bundle:
            yield f"{name} has no caBundle: every call fails. {_KEEPER}"
        elif serving and signer(serving.leaf.check(), certificates(bundle)) is None:
            yield f"the caBundle of {name} does not vouch for the leaf: every call fails. {_KEEPER}"
        elif wanted and not same(bundle, wanted):
            yield f"the caBundle of {name} is another one than is kept. {_KEEPER}"
