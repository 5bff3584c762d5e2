"""The state of an installation's certificates, as far as the caller may read it, and its report."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import click

from certs.bundle import certificates, same, signer
from certs.issue import names_of
from certs.kept import Authority, Serving
from certs.life import renewal_time
from certs.rotation import phase
from webhook import names
from webhook.applied_by import applied_by
from webhook.controller.certificates.certificate_objects import (
    Installation,
    bundles,
    is_renewal_requested,
)
from webhook.errors import PassOver
from webhook.installation.doctor.cluster_state import error
from webhook.installation.doctor.program_checks import judge_serving, judge_trust, keeper_of
from webhook.kube.secrets import data_of
from webhook.text.layout import hanging, table
from webhook.times import elapsed, format_span, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from cryptography import x509

    from webhook.api_paths import ObjectPath
    from webhook.installation.doctor.cluster_state import Finding
    from webhook.kube.client import Client

_OF_PODS: Final = "MutatingWebhookConfiguration "
# Enough of 32 digits to distinguish serial numbers.
_DIGITS: Final = 12
_INDENT: Final = 2
_PHASES: Final = {
    "staged": "the staged authority is published in every caBundle",
    "published": "the staged authority signs, once every API server has had time to see it",
    "retiring": "what retires leaves the caBundles, once every replica serves the new leaf",
}


@dataclass(frozen=True, slots=True)
class ReadObject:
    """An object as it was read: None if it does not exist, or may not be read (`hidden`)."""

    raw: Mapping[str, Any] | None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class CertificateState:
    """The objects of an installation's certificates. The keys in the Secrets are never printed."""

    installation: Installation
    authority: ReadObject
    serving: ReadObject
    configurations: Mapping[str, ReadObject]

    @property
    def kept_authority(self) -> Authority | None:
        """None if it does not exist, cannot be parsed, or may not be read."""
        return Authority.read(data_of(self.authority.raw))

    @property
    def kept_serving(self) -> Serving | None:
        """None if it does not exist, cannot be parsed, or may not be read."""
        return Serving.read(data_of(self.serving.raw))

    @property
    def asked(self) -> tuple[bool, bool]:
        """Whether a new authority was requested, and whether a new leaf was."""
        return is_renewal_requested(self.authority.raw), is_renewal_requested(self.serving.raw)

    @property
    def published(self) -> Mapping[str, bytes]:
        """The bundle of each webhook that calls the installation's Service, by its name."""
        return {
            name: bundle
            for configuration in self.configurations.values()
            for name, bundle in bundles(configuration.raw, self.installation).items()
        }

    @property
    def bundle(self) -> bytes | None:
        """The stored bundle, which should be published; None if it is unknown."""
        kept = self.kept_authority or self.kept_serving
        return kept.bundle if kept else None


async def read_state(client: Client, installation: Installation) -> CertificateState:
    """Read all objects. Raises ClusterError unless an object is absent or forbidden."""
    configurations = {
        f"{place.kind} {place.name}": await _read(client, place.path)
        for place in installation.places
    }
    serving = await _read(client, installation.secret(installation.serving))
    authority = await _read(client, installation.secret(installation.authority))
    return CertificateState(installation, authority, serving, configurations)


async def _read(client: Client, path: ObjectPath) -> ReadObject:
    with PassOver(HTTPStatus.FORBIDDEN):
        return ReadObject(await client.find(path))
    return ReadObject(None, hidden=True)


def document(state: CertificateState, now: datetime) -> dict[str, Any]:
    """Return the state as JSON, without keys; the guide to the command line explains its fields."""
    return {
        "authority": _authority(state),
        "leaf": _leaf(state),
        "webhooks": _webhooks(state),
        "next": _next(state),
        "findings": [finding.document() for finding in findings(state, now)],
    }


def _authority(state: CertificateState) -> dict[str, Any]:
    authority = state.kept_authority
    report: dict[str, Any] = {
        "secret": state.installation.authority,
        "visible": not state.authority.hidden,
        "phase": None if state.authority.hidden else phase(authority),
        "asked": state.asked[0],
    }
    if authority is None:
        return report
    since = authority.published_since
    return {
        **report,
        "signing": _certificate(authority.signing.check()) if authority.signing else None,
        "staged": _certificate(authority.staged.check()) if authority.staged else None,
        "publishedSince": to_second(since) if since else None,
        "retiring": [_certificate(certificate) for certificate in authority.retiring],
    }


def _leaf(state: CertificateState) -> dict[str, Any]:
    serving = state.kept_serving
    report: dict[str, Any] = {
        "secret": state.installation.serving,
        "visible": not state.serving.hidden,
        "asked": state.asked[1],
    }
    if serving is None:
        return report
    leaf = serving.leaf.check()
    authorities = certificates(serving.bundle)
    by = signer(leaf, authorities)
    return {
        **report,
        **_certificate(leaf),
        "names": names_of(leaf),
        "signedBy": _certificate(by)["serial"] if by else None,
        "bundle": [_certificate(authority) for authority in authorities],
    }


def _webhooks(state: CertificateState) -> list[dict[str, Any]]:
    serving, wanted = state.kept_serving, state.bundle
    return [
        {
            "name": name,
            "bundle": [_certificate(certificate) for certificate in certificates(bundle)],
            "vouches": serving and signer(serving.leaf.check(), certificates(bundle)) is not None,
            "asKept": None if wanted is None else same(bundle, wanted),
        }
        for name, bundle in state.published.items()
    ]


def _next(state: CertificateState) -> str:
    authority, serving = state.kept_authority, state.kept_serving
    if by_cert_manager(state):
        return "cert-manager renews the leaf"
    if state.authority.hidden:
        return "unknown: the authority cannot be read"
    if under_way := _PHASES.get(phase(authority)):
        return under_way
    asked = [what for what, yes in zip(("authority", "leaf"), state.asked, strict=True) if yes]
    if asked:
        return f"a new {' and a new '.join(asked)}, on request"
    if authority is None or authority.signing is None or serving is None:
        return "missing parts are created"
    due = {
        "authority": renewal_time(authority.signing.check()),
        "leaf": renewal_time(serving.leaf.check()),
    }
    first = min(due, key=lambda what: due[what])
    return f"a new {first}, from {to_second(due[first])} on"


def _certificate(certificate: x509.Certificate) -> dict[str, Any]:
    return {
        # In the form of the webhook's log and of openssl.
        "serial": f"{certificate.serial_number:x}",
        "expires": to_second(certificate.not_valid_after_utc),
        "renewal": to_second(renewal_time(certificate)),
    }


def by_cert_manager(state: CertificateState) -> bool:
    """Return whether cert-manager manages the leaf: then Fairlead has no authority."""
    metadata = (state.serving.raw or {}).get("metadata") or {}
    return names.MADE_BY_CERT_MANAGER in (metadata.get("annotations") or {})


def findings(state: CertificateState, now: datetime) -> Iterator[Finding]:
    """Yield all current problems, with cures. Objects that may not be read are not checked."""
    installation, namespace = state.installation, state.installation.namespace
    keeper = keeper_of(cert_manager=by_cert_manager(state), namespace=namespace)
    if state.kept_authority is None and not state.authority.hidden and not by_cert_manager(state):
        how = "cannot be read as an authority" if state.authority.raw else "is not there"
        where = f"Secret {namespace}/{installation.authority}"
        yield error(f"the {where} {how}, and will be created again", keeper.why)
    serving = data_of(state.serving.raw) if state.serving.raw else None
    if not state.serving.hidden:
        where = f"Secret {namespace}/{installation.serving}"
        serving_findings = [*judge_serving(serving, where, installation.server_name, keeper, now)]
        yield from serving_findings
        if serving and not serving_findings and state.kept_serving is None:
            delete = f"`kubectl -n {namespace} delete secret {installation.serving}`"
            again = f"{delete}: {keeper.name} creates it again"
            yield error(f"the {where} has no key of its certificate", again)
    # Nothing fails without the validating one; `fairlead doctor` checks whether it is missing.
    again = applied_by(
        configuration.raw for configuration in state.configurations.values()
    ).command()
    pods = [item for item in state.configurations.items() if item[0].startswith(_OF_PODS)]
    for name, configuration in pods:
        if configuration.raw is None and not configuration.hidden:
            yield error(f"there is no {name}: no pod is sent to the webhook", again)
    if not state.published and all(configuration.raw for _, configuration in pods):
        what = f"no webhook calls the Service {installation.service} of this namespace"
        yield error(what, "is it the right namespace (-n), and the right cluster?")
    yield from judge_trust(state.published, serving, keeper)
    for webhook in _webhooks(state):
        if webhook["bundle"] and webhook["asKept"] is False and webhook["vouches"] is not False:
            cure = f"{keeper.name} writes it again within seconds: {keeper.why}"
            yield error(f"the caBundle of {webhook['name']} differs from the stored one", cure)


def lines(report: dict[str, Any], now: datetime, *, wide: bool = False) -> Iterator[str]:
    """Yield the lines of a document; wide: with the names of the leaf, and its authority."""
    authority, leaf = report["authority"], report["leaf"]
    yield f"authority: {authority['phase'] or 'unknown'} (Secret {authority['secret']})"
    if not authority["visible"]:
        yield from hanging(
            "You may not read this Secret, which holds the authority's key. What clients trust is "
            "shown below.",
            _INDENT,
        )
    unknown = "" if leaf["visible"] else ": unknown, because you may not read it"
    yield f"leaf (Secret {leaf['secret']}){unknown}"
    more = ("signed by", "names") if wide else ()
    authorities = [
        (f"authority/{what}", certificate) for what, certificate in _authorities(authority)
    ]
    authorities += [("leaf", leaf)] if "serial" in leaf else []
    for head, rows in (
        (
            ("certificate", "serial", "expires", *more, "renewal"),
            [[what, *_row(certificate, now, wide=wide)] for what, certificate in authorities],
        ),
        (
            ("caBundle", "leaf", "trusts"),
            [
                [webhook["name"], _verdict(webhook), _serials(webhook)]
                for webhook in report["webhooks"]
            ],
        ),
    ):
        if rows:
            yield ""
            yield from table(head, rows)
    if not report["webhooks"]:
        yield ""
        yield "no caBundles found"
    yield ""
    yield from hanging(report["next"], 6, "next: ")
    for finding in report["findings"]:
        problem = f"{finding['message']}. Cure: {finding['cure']}"
        yield from hanging(problem, 7, click.style("wrong: ", fg="red", bold=True))


def _authorities(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for what in ("signing", "staged"):
        if report.get(what):
            yield what, report[what]
    for certificate in report.get("retiring", ()):
        yield "retiring", certificate


def _serials(webhook: dict[str, Any]) -> str:
    return (
        ", ".join(certificate["serial"][:_DIGITS] for certificate in webhook["bundle"])
        or "no authority"
    )


def _verdict(webhook: dict[str, Any]) -> str:
    if webhook["vouches"] is None:
        return "unknown"
    if not webhook["vouches"]:
        return click.style("refuses the leaf", fg="red")
    return "fine" if webhook["asKept"] else click.style("outdated", fg="yellow")


def _row(certificate: dict[str, Any], now: datetime, *, wide: bool) -> Iterator[str]:
    yield certificate["serial"][:_DIGITS]
    left = -elapsed(certificate["expires"], now)
    yield f"in {format_span(left)}" if left > 0 else click.style("expired", fg="red")
    if wide:
        by = certificate.get("signedBy", certificate["serial"])
        yield by[:_DIGITS] if by else "no authority in its bundle"
        yield ", ".join(certificate.get("names", ()))
    until = -elapsed(certificate["renewal"], now)
    yield f"in {format_span(until)}" if until > 0 else "due"
