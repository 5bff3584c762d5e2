"""The state of certificates as one JSON document, from which the text is made too."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from certs.bundle import certificates, same, signer
from certs.life import renewal_time
from certs.rotation import phase
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certs.kept import Authority, Serving
    from webhook.cli.certs.sight import Sight

# A controller looks once a minute. This leaves one time to start.
OVERDUE: Final = timedelta(hours=1)
CERT_MANAGER: Final = "cert-manager.io/certificate-name"
_OF_PODS: Final = "MutatingWebhookConfiguration "
_KEEPER: Final = "Is a controller running with --certificates? Its log says why it does not"


def document(sight: Sight, now: datetime) -> dict[str, Any]:
    """All that can be told, without any key: see the guide to the command line for its fields."""
    return {
        "authority": _authority(sight),
        "leaf": _leaf(sight),
        "webhooks": _webhooks(sight),
        "next": _next(sight),
        "problems": problems(sight, now),
    }


def _authority(sight: Sight) -> dict[str, Any]:
    authority = sight.kept_authority
    told: dict[str, Any] = {
        "secret": sight.installation.authority,
        "visible": not sight.authority.hidden,
        "phase": None if sight.authority.hidden else phase(authority),
        "asked": sight.asked[0],
    }
    if authority is None:
        return told
    since = authority.published_since
    return {
        **told,
        "signing": _certificate(authority.signing.check()) if authority.signing else None,
        "staged": _certificate(authority.staged.check()) if authority.staged else None,
        "publishedSince": to_second(since) if since else None,
        "retiring": [_certificate(each) for each in authority.retiring],
    }


def _leaf(sight: Sight) -> dict[str, Any]:
    serving = sight.kept_serving
    told: dict[str, Any] = {
        "secret": sight.installation.serving,
        "visible": not sight.serving.hidden,
        "asked": sight.asked[1],
    }
    if serving is None:
        return told
    leaf = serving.leaf.check()
    authorities = certificates(serving.bundle)
    by = signer(leaf, authorities)
    return {
        **told,
        **_certificate(leaf),
        "names": _names(leaf),
        "signedBy": _serial(by) if by else None,
        "bundle": [_certificate(each) for each in authorities],
    }


def _webhooks(sight: Sight) -> list[dict[str, Any]]:
    authority, serving = sight.kept_authority, sight.kept_serving
    wanted = authority.bundle if authority else serving.bundle if serving else None
    return [
        {
            "name": name,
            "bundle": [_certificate(each) for each in certificates(bundle)],
            "vouches": _vouches(bundle, serving),
            "asKept": None if wanted is None else same(bundle, wanted),
        }
        for name, bundle in sight.published.items()
    ]


def _vouches(bundle: bytes, serving: Serving | None) -> bool | None:
    if serving is None:
        return None
    return signer(serving.leaf.check(), certificates(bundle)) is not None


def _next(sight: Sight) -> str:
    authority, serving = sight.kept_authority, sight.kept_serving
    if by_cert_manager(sight):
        return "cert-manager renews the leaf"
    if sight.authority.hidden:
        return "cannot be told without the authority"
    if authority and (under_way := _under_way(authority)):
        return under_way
    asked = [what for what, yes in zip(("authority", "leaf"), sight.asked, strict=True) if yes]
    if asked:
        return f"a new {' and a new '.join(asked)}, which somebody asked for"
    if authority is None or authority.signing is None or serving is None:
        return "what is missing is made"
    due = {
        "authority": renewal_time(authority.signing.check()),
        "leaf": renewal_time(serving.leaf.check()),
    }
    first = min(due, key=lambda what: due[what])
    return f"a new {first}, from {to_second(due[first])} on"


def _under_way(authority: Authority) -> str:
    match phase(authority):
        case "staged":
            return "the staged authority is published in every caBundle"
        case "published":
            return "the staged authority signs, once every API server has had time to see it"
        case "retiring":
            return "what retires leaves the caBundles, once every replica serves the new leaf"
    return ""


def _certificate(certificate: x509.Certificate) -> dict[str, Any]:
    return {
        "serial": _serial(certificate),
        "expires": to_second(certificate.not_valid_after_utc),
        "renewal": to_second(renewal_time(certificate)),
    }


def _serial(certificate: x509.Certificate) -> str:
    # As the webhook's log and openssl write it.
    return f"{certificate.serial_number:x}"


def _names(leaf: x509.Certificate) -> list[str]:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = found.get_values_for_type(x509.IPAddress)
    return [*found.get_values_for_type(x509.DNSName), *(str(each) for each in addresses)]


def by_cert_manager(sight: Sight) -> bool:
    """Whether the leaf is cert-manager's: then there is no authority of ours."""
    metadata = (sight.serving.raw or {}).get("metadata") or {}
    return CERT_MANAGER in (metadata.get("annotations") or {})


def problems(sight: Sight, now: datetime) -> list[str]:
    """Everything that is wrong now. What may not be seen is not judged."""
    return [*_authority_findings(sight, now), *_leaf_findings(sight, now), *_published(sight)]


def _authority_findings(sight: Sight, now: datetime) -> Iterator[str]:
    name = sight.installation.authority
    authority = sight.kept_authority
    if authority and authority.signing:
        yield from _life("the authority", authority.signing.check(), now)
    elif authority is None and not sight.authority.hidden and not by_cert_manager(sight):
        how = "cannot be read as an authority" if sight.authority.raw else "is not there"
        yield f"the Secret {name} {how}, and will be made anew. {_KEEPER}"


def _leaf_findings(sight: Sight, now: datetime) -> Iterator[str]:
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
