"""Checks of Deployments, pods, endpoints, versions, the leader, and certificates."""

from __future__ import annotations

import re
from datetime import timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from certs.bundle import certificates as read_bundle
from certs.bundle import signer, verifies
from certs.errors import CertificateError
from certs.issue import names_of
from certs.kept import BUNDLE, CERTIFICATE
from certs.life import renewal_time
from certs.pair import read_certificate
from webhook import names
from webhook.cluster_objects.deployments import missing_pods
from webhook.crd.comparison import compare
from webhook.installation import rollout
from webhook.installation.doctor.cluster_state import Finding, ReadKind, check, error, note, warning
from webhook.installation.manifests import DEFAULT
from webhook.installation.object_kinds import CRD, key_of
from webhook.installation.server_version import find_shortage, missing_features
from webhook.interception import read_ca_bundle
from webhook.judgement.entry_states import untrusted_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from cryptography import x509

    from webhook.installation.doctor.cluster_state import ClusterState

RUNS: Final = key_of(CRD, f"{names.RUNS}.{names.GROUP}")
_RELEASE: Final = re.compile(r"v?(\d+\.\d+\.\d+)")


@check("versions", ReadKind.DEPLOYMENTS)
def versions(state: ClusterState) -> Iterator[Finding]:
    """Check that the cluster is new enough, and all parts of Fairlead have one version."""
    if shortage := find_shortage(state.server):
        yield error(*shortage)
    else:
        yield from (note(*feature) for feature in missing_features(state.server))
    images = {name: _tag(deployment) for name, deployment in sorted(state.deployments.items())}
    if len(set(images.values())) > 1:
        shown = ", ".join(f"{name} is {tag}" for name, tag in images.items())
        yield warning(f"the programs are of different versions: {shown}", state.reinstall())
    for name, tag in images.items():
        release = _RELEASE.fullmatch(tag)
        if release and release[1] != state.version:
            yield warning(
                f"{name} is of version {release[1]}, and this command of {state.version}",
                f"use the command of version {release[1]}, or bring the cluster to this one: "
                f"{state.reinstall('--image', '--set image.tag=TAG')}",
            )


@check("definitions", needs=ReadKind.DEFINITIONS)
def definitions(state: ClusterState) -> Iterator[Finding]:
    """Check that all kinds are served, as this version defines them."""
    cure = f"{state.reinstall()}, with the version that shall run"
    for key, shipped in state.expected.items():
        if key.kind.name == CRD:
            live = state.definitions.get(key.name)
            # What is missing of the policies' own is a finding about the policies.
            if live is not None:
                yield from _definition(key.name, live, shipped, cure)
            elif key == RUNS:
                yield error(f"the cluster knows no {key.name}", state.reinstall())


def _definition(
    name: str, live: Mapping[str, Any], shipped: Mapping[str, Any], cure: str
) -> Iterator[Finding]:
    established = rollout.condition_of(live, "Established")
    if established.get("status") != "True":
        yield error(
            f"{name} is not served: {established.get('message', 'not established')}",
            f"kubectl describe crd {name}",
        )
    comparison = compare(shipped, live)
    if comparison.lacking:
        yield (error if comparison.dropped else warning)(comparison.report(name), cure)
    elif comparison.differs:
        yield warning(
            f"the definition {name} is not that of this version: fields may be dropped, or refused",
            cure,
        )


@check("programs", ReadKind.DEPLOYMENTS, ReadKind.PODS)
def programs(state: ClusterState) -> Iterator[Finding]:
    """Both Deployments exist, with all pods new, available and ready."""
    wanted = [names.CONTROLLER, *([names.WEBHOOK] if state.in_cluster else [])]
    if state.elsewhere:
        wanted.clear()
        yield note(
            f"the webhook runs outside of the cluster, at {state.url}, and so may the controller: "
            "nothing is known of what runs there"
        )
    for name in wanted:
        if name not in state.deployments and ReadKind.DEPLOYMENTS not in state.unread:
            yield error(f"there is no Deployment {names.NAMESPACE}/{name}", state.reinstall())
    for deployment in state.deployments.values():
        name = deployment["metadata"]["name"]
        if name in wanted and not deployment["spec"].get("replicas", 1):
            yield error(
                f"Deployment {name} is scaled to 0: none of its pods runs", state.reinstall()
            )
        missing = missing_pods(deployment)
        if not missing:
            continue
        troubles = rollout.troubles(deployment, state.pods, state.reasons)
        none = not (deployment.get("status") or {}).get("availableReplicas")
        progress = rollout.condition_of(deployment, "Progressing")
        stuck = progress.get("status") == "False"
        if stuck:
            missing += f", and its rollout is stuck: {progress.get('message', 'no reason given')}"
        make = error if none or stuck else warning
        cure = f"kubectl -n {names.NAMESPACE} describe deployment {name}"
        yield make(missing, troubles[0].cure if troubles else cure)
        for trouble in troubles:
            yield make(trouble.what, trouble.cure)


@check("watches", ReadKind.DEPLOYMENTS, ReadKind.METRICS)
def watches(state: ClusterState) -> Iterator[Finding]:
    """Check that every replica of webhook and controller receives updates from the API server."""
    for (replica, resource), watch in sorted(state.watches.items()):
        log = f"kubectl logs -n {names.NAMESPACE} {replica}"
        if watch.age > names.SILENT:
            since = f"for {watch.age:.0f} s" if isfinite(watch.age) else "since it started"
            yield warning(
                f"pod {replica} has received no update of {resource} {since}, and uses older data",
                f"{log}, and check the connection between it and the API server",
            )
        elif watch.failing > names.SILENT:
            yield warning(
                f"pod {replica} has failed to watch {resource} for {watch.failing:.0f} s, and uses "
                "older data",
                f"{log} shows the error",
            )
        if watch.left_out:
            yield warning(
                f"pod {replica} leaves out objects of {resource} that it cannot read: "
                f"{watch.left_out}",
                f"{log} names them: look for 'left out'",
            )
        if watch.restarts:
            yield warning(
                f"pod {replica} has started its watch of {resource} again after unexpected "
                f"exceptions: {watch.restarts}",
                f"this is a bug: report the traceback in its log: {log}",
            )


@check("writes", ReadKind.DEPLOYMENTS, ReadKind.METRICS)
def writes(state: ClusterState) -> Iterator[Finding]:
    """Check that what webhook and controller write arrives: statuses, Events, reports."""
    for (replica, write), seconds in sorted(state.failing_writes.items()):
        if seconds > names.SILENT:
            yield warning(
                f"pod {replica} has failed to write for {seconds:.0f} s: {write}",
                "see the check permissions; the error is in its log: "
                f"kubectl logs -n {names.NAMESPACE} {replica}",
            )


@check("endpoints", ReadKind.POD_RULES, needs=ReadKind.ENDPOINTS)
def endpoints(state: ClusterState) -> Iterator[Finding]:
    """Check that the Service has ready endpoints."""
    if not state.in_cluster or state.configuration is None:
        return
    ready = sum(state.endpoints)
    if not ready:
        what = (
            f"Service {names.NAMESPACE}/{names.WEBHOOK} has no ready endpoint: the API server has "
            "no webhook to call"
        )
        meanwhile = (
            "`fairlead webhook disable --for 15m` lets pods of runs be created unplaced meanwhile"
        )
        status = (state.deployments.get(names.WEBHOOK) or {}).get("status") or {}
        if status.get("availableReplicas"):
            what += (
                f", though {status['availableReplicas']} of its pods are ready: see its selector"
            )
            yield error(what, f"{state.reinstall()}; {meanwhile}")
        else:
            yield error(what, f"see the findings about the pods; {meanwhile}")
    elif ready == 1:
        deployment = state.deployments.get(names.WEBHOOK)
        wanted = deployment["spec"].get("replicas", 1) if deployment else None
        if wanted == 1:
            yield note(
                f"Deployment {names.WEBHOOK} wants one replica: while it is replaced, no webhook "
                "answers",
                f"if that is too few: {_more_replicas(state)}",
            )
        else:
            more = f" of {wanted}" if wanted else ""
            yield warning(
                f"the webhook has one ready replica{more}: with it the last answer goes",
                "see the findings of programs about those that are not ready",
            )


def _more_replicas(state: ClusterState) -> str:
    # Overlays replace each other, so the cure names the others of last time too.
    others = [overlay for overlay in state.overlays if overlay != "development"] or [DEFAULT]
    overlays = " ".join(f"--overlay {overlay}" for overlay in others)
    chosen = overlays if "development" in state.overlays else ""
    return state.reinstall(chosen, "--set webhook.replicas=3")


@check("leader", needs=ReadKind.LEASE)
def leader(state: ClusterState) -> Iterator[Finding]:
    """Check that one controller is the leader."""
    if not state.leader and ReadKind.LEASE not in state.absent:
        yield error(
            "no controller leads: Runs are not reconciled, certificates are not renewed, "
            "and the rules are not restored after fairlead webhook disable",
            f"kubectl -n {names.NAMESPACE} logs deployment/{names.CONTROLLER}",
        )
    elif state.leader and state.leads is False:
        yield error(
            f"{state.leader} holds the Lease {names.CONTROLLER}, and none of Fairlead's "
            "controllers says that it leads: Runs are not reconciled, certificates are not "
            "renewed, and what is not intercepted is not known",
            f"if it stays so for half a minute, `kubectl -n {names.NAMESPACE} delete lease "
            f"{names.CONTROLLER}`",
        )


def _tag(deployment: Mapping[str, Any]) -> str:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    image = str(containers[0]["image"]).partition("@")[0]
    name, colon, tag = image.rpartition(":")
    return tag if colon and "/" not in tag and name else "latest"


SECRET: Final = f"Secret {names.NAMESPACE}/{names.SERVING_SECRET}"
# The one name that the API server checks (client-go's webhook resolver).
SERVER_NAME: Final = f"{names.WEBHOOK}.{names.NAMESPACE}.svc"


# A controller checks once a minute. The rest is time to start one.
OVERDUE: Final = timedelta(hours=1)


class Keeper(NamedTuple):
    """What manages the certificates, and where to read why it does not renew them.

    late: how long after its time a renewal is overdue; None: a tenth of the certificate's life.
    """

    name: str
    why: str
    late: timedelta | None = None

    @property
    def cure(self) -> str:
        """What to do about a certificate that it should have renewed."""
        return f"{self.name} renews it by itself, and reports why it does not: {self.why}"


def keeper_of(*, cert_manager: bool, namespace: str = names.NAMESPACE) -> Keeper:
    """Return what manages the certificates of an installation in this namespace."""
    kubectl = f"kubectl -n {namespace}"
    if cert_manager:
        return Keeper("cert-manager", f"{kubectl} describe certificates,certificaterequests")
    why = f"{kubectl} logs deployment/{names.CONTROLLER} | grep certificate"
    return Keeper("the controller", why, OVERDUE)


@check("certificates", needs=ReadKind.SERVING)
def certificates(state: ClusterState) -> Iterator[Finding]:
    """Check that the serving certificate is readable, and valid for its name and long enough."""
    if state.in_cluster:
        keeper = keeper_of(cert_manager=state.by_cert_manager)
        yield from judge_serving(state.serving, SECRET, SERVER_NAME, keeper, state.now)


def judge_serving(
    serving: Mapping[str, bytes] | None,
    secret: str,
    server_name: str,
    keeper: Keeper,
    now: datetime,
) -> Iterator[Finding]:
    """Yield what is wrong with the content of the serving Secret; None: it does not exist."""
    if serving is None:
        yield error(f"there is no {secret}: the webhook has nothing to serve with", keeper.why)
        return
    namespace, _, name = secret.removeprefix("Secret ").partition("/")
    again = f"`kubectl -n {namespace} delete secret {name}`: {keeper.name} creates it again"
    # What refuses every change of a Secret, such as `immutable`, lets it be deleted.
    cure = f"{keeper.cure}; if it may not write the Secret, {again}"
    try:
        leaf = read_certificate(serving.get(CERTIFICATE, b""))
    except CertificateError as problem:
        yield error(f"{secret}: {problem}", again)
        return
    yield from _life("the serving certificate", leaf, keeper, cure, now)
    if server_name not in names_of(leaf):
        yield error(
            f"the serving certificate is not for {server_name}, which the API server checks", cure
        )
    bundle = read_bundle(serving.get(BUNDLE, b""))
    if bundle and signer(leaf, bundle) is None:
        yield error("none of the authorities in its Secret signed the serving certificate", cure)
    for authority in bundle:
        yield from _life(
            f"the authority {authority.subject.rfc4514_string()}",
            authority,
            keeper,
            keeper.cure,
            now,
        )


@check("trust", ReadKind.POD_RULES, ReadKind.JUDGING, ReadKind.SERVING)
def trust(state: ClusterState) -> Iterator[Finding]:
    """Check that all entries have one caBundle, which verifies the certificate."""
    published = {
        entry["name"]: read_ca_bundle(entry)
        for entry in (*state.entries, *state.judging_entries)
        if "service" in entry["clientConfig"]
    }
    keeper = keeper_of(cert_manager=state.by_cert_manager)
    yield from judge_trust(published, state.serving, keeper)
    if len({bundle for bundle in published.values() if bundle}) > 1:
        differing = ", ".join(name for name, bundle in published.items() if bundle)
        yield warning(
            f"the caBundles of {differing} differ",
            f"{keeper.name} writes one to all within seconds: {keeper.why}",
        )


def judge_trust(
    published: Mapping[str, bytes], serving: Mapping[str, bytes] | None, keeper: Keeper
) -> Iterator[Finding]:
    """Yield the entries whose bundle is empty, or does not verify the serving certificate."""
    try:
        leaf = read_certificate((serving or {}).get(CERTIFICATE, b""))
    except CertificateError:
        leaf = None
    reason_by_entry = untrusted_entries(
        published, (lambda pem: verifies(pem, leaf)) if leaf else None
    )
    for name, why in reason_by_entry.items():
        yield error(f"{name}: {why}", f"{keeper.name} writes it within seconds: {keeper.why}")


def _life(
    what: str, certificate: x509.Certificate, keeper: Keeper, cure: str, now: datetime
) -> Iterator[Finding]:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= end:
        yield error(f"{what} expired on {end:%Y-%m-%d %H:%M} UTC", cure)
    elif now < begin:
        yield error(
            f"{what} is not valid before {begin:%Y-%m-%d %H:%M} UTC: a clock is wrong",
            f"check the clocks of the nodes and of this machine; {cure}",
        )
    elif now > renewal_time(certificate) + (keeper.late or (end - begin) / 10):
        yield warning(
            f"{what} expires on {end:%Y-%m-%d %H:%M} UTC, and should have been renewed by now",
            keeper.cure,
        )
