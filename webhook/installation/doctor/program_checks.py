"""Checks of Deployments, pods, endpoints, versions and the leader."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.installation import rollout
from webhook.installation.doctor.cluster_state import Finding, ReadKind, check, error, note, warning
from webhook.installation.object_kinds import CRD, key_of
from webhook.installation.server_version import find_shortage, missing_features

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState

RUNS: Final = key_of(CRD, f"{names.RUNS}.{names.GROUP}")
_RELEASE: Final = re.compile(r"v?(\d+\.\d+\.\d+)")


@check("versions", ReadKind.DEPLOYMENTS)
def versions(state: ClusterState) -> Iterator[Finding]:
    """Check that the cluster is new enough, and all parts of Fairlead have one version."""
    if shortage := find_shortage(state.server):
        yield error(*shortage)
    else:
        yield from (note(*each) for each in missing_features(state.server))
    images = {name: _tag(each) for name, each in sorted(state.deployments.items())}
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


@check("definition of Runs", needs=ReadKind.DEFINITION)
def definition(state: ClusterState) -> Iterator[Finding]:
    """Check that Runs are served, as this version defines them."""
    if state.definition is None:
        yield error(f"the cluster knows no {names.RUNS}.{names.GROUP}", state.reinstall())
        return
    conditions = (state.definition.get("status") or {}).get("conditions") or ()
    states = {each["type"]: each for each in conditions}
    established = states.get("Established", {})
    if established.get("status") != "True":
        yield error(
            f"Runs are not served: {established.get('message', 'not established')}",
            f"kubectl describe crd {names.RUNS}.{names.GROUP}",
        )
    shipped = state.expected.get(RUNS)
    if shipped and _schemas(state.definition) != _schemas(shipped):
        yield warning(
            "the definition of Runs is not that of this version: fields may be dropped, or refused",
            f"{state.reinstall()}, with the chart of the version that shall run"
            if state.helm_release
            else "fairlead install, by the command of the version that shall run",
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
        missing = rollout.missing(deployment)
        if not missing:
            continue
        found = list(rollout.troubles(deployment, state.pods))
        none = not (deployment.get("status") or {}).get("availableReplicas")
        make = error if none else warning
        cure = f"kubectl -n {names.NAMESPACE} describe deployment {deployment['metadata']['name']}"
        yield make(missing, found[0].cure if found else cure)
        for trouble in found:
            yield make(trouble.what, trouble.cure)


@check("watches", ReadKind.DEPLOYMENTS, ReadKind.METRICS)
def watches(state: ClusterState) -> Iterator[Finding]:
    """Check that every replica of webhook and controller receives updates from the API server."""
    for (replica, resource), seconds in sorted(state.silences.items()):
        if seconds > names.SILENT:
            since = f"for {seconds:.0f} s" if isfinite(seconds) else "since it started"
            yield warning(
                f"pod {replica} has received no update of {resource} {since}, and uses older data",
                f"kubectl logs -n {names.NAMESPACE} {replica}, and check the connection "
                "between it and the API server",
            )


@check("endpoints", ReadKind.POD_RULES, needs=ReadKind.ENDPOINTS)
def endpoints(state: ClusterState) -> Iterator[Finding]:
    """Check that the Service has ready endpoints."""
    if not state.in_cluster or state.configuration is None:
        return
    ready = sum(state.endpoints)
    if not ready:
        yield error(
            f"Service {names.NAMESPACE}/{names.WEBHOOK} has no ready endpoint: the API "
            "server has no webhook to call",
            "see the findings about the pods; fairlead disable --for 15m lets pods of runs "
            "be created unplaced meanwhile",
        )
    elif ready == 1:
        yield warning(
            "the webhook has one ready replica: with it the last answer goes",
            f"kubectl -n {names.NAMESPACE} scale deployment {names.WEBHOOK} --replicas=3",
        )


@check("leader", needs=ReadKind.LEASE)
def leader(state: ClusterState) -> Iterator[Finding]:
    """Check that one controller is the leader."""
    if not state.leader and ReadKind.LEASE not in state.beyond:
        yield error(
            "no controller leads: Runs are not reconciled, certificates are not renewed, "
            "and the rules are not restored after fairlead disable",
            f"kubectl -n {names.NAMESPACE} logs deployment/{names.CONTROLLER}",
        )


def _tag(deployment: Mapping[str, Any]) -> str:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    image = str(containers[0]["image"]).partition("@")[0]
    name, colon, tag = image.rpartition(":")
    return tag if colon and "/" not in tag and name else "latest"


def _schemas(definition: Mapping[str, Any]) -> dict[str, Any]:
    versions = definition["spec"]["versions"]
    return {each["name"]: each["schema"] for each in versions}
