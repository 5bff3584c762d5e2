"""Checks of what judges policies and speaks of workloads: the validating configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names, validating
from webhook.errors import InvalidDocuments
from webhook.installation.doctor.cluster_state import Read
from webhook.installation.doctor.findings import Finding, error, note, warning
from webhook.installation.kinds import key
from webhook.installation.policies import of_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState

    Json = Mapping[str, Any]

_WHAT: Final = f"ValidatingWebhookConfiguration {names.WEBHOOK_CONFIGURATION}"
_DELETE: Final = f"kubectl delete validatingwebhookconfiguration {names.WEBHOOK_CONFIGURATION}"
_INSTALL: Final = "fairlead install"
# What goes without it: of each entry.
_WITHOUT: Final = {
    validating.POLICIES: "policies are stored without being judged, and a set that does not "
    "compile is only told afterwards",
    validating.WORKLOADS: "who creates a Job is not told what becomes of its pods",
}
_CONFIG_MAP: Final = f"ConfigMap {names.NAMESPACE}/{names.POLICIES_CONFIG_MAP}"


def judgement(seen: ClusterState) -> Iterator[Finding]:
    """Policies are judged when they are written, workloads spoken of, and nobody is locked out."""
    if seen.refused_policies:
        yield error(
            f"no policy can be written: {seen.refused_policies}",
            f"mend what is told of the webhook here; until then {_DELETE} has policies stored "
            f"unjudged, and {_INSTALL} brings it back",
        )
    if seen.judging is None:
        if Read.JUDGING not in seen.unread:
            without = "; ".join(_WITHOUT[each["name"]] for each in _wanted(seen))
            # Whoever runs a webhook outside of the cluster has not installed it.
            make, cure = (warning, _INSTALL) if seen.in_cluster else (note, "")
            yield make(f"there is no {_WHAT}: {without}", cure)
        return
    if Read.DEPLOYMENTS in seen.unread:
        return  # they tell whether policies are to be judged
    live = {each["name"]: each for each in seen.judging_entries}
    for wanted in _wanted(seen):
        found = live.pop(wanted["name"], None)
        if found is None:
            yield warning(
                f"{_WHAT} has no entry {wanted['name']}: {_WITHOUT[wanted['name']]}", _INSTALL
            )
        else:
            yield from _entry(found, wanted)
    if live.get(validating.POLICIES, {}).get("rules") and seen.in_cluster:
        yield error(
            f"{validating.POLICIES} has policies in the cluster judged, and the webhook takes its "
            "own from files: none can be written",
            f"{_INSTALL} --policies-from-files takes the entry away",
        )


def left_behind(seen: ClusterState) -> Iterator[Finding]:
    """Policies of a ConfigMap that nobody reads any more are in the cluster, every one."""
    if not seen.policies_from_cluster or not seen.left_files:
        return
    try:
        documents = of_files(seen.left_files)
    except InvalidDocuments:
        documents = []
    keys = [key(each) for each in documents]
    there = seen.policies or {}
    lost = [str(each) for each in keys if f"{each.kind.resource}/{each.name}" not in there]
    if lost and seen.policies is not None:
        yield warning(
            f"{', '.join(lost)} of {_CONFIG_MAP}: not in the cluster, and so not in force",
            "write it: fairlead install --policies DIR, or kubectl apply -f FILE; if it is not "
            f"wanted any more, kubectl -n {names.NAMESPACE} delete configmap "
            f"{names.POLICIES_CONFIG_MAP}",
        )
    else:
        yield note(f"{_CONFIG_MAP} is not read: the policies are objects of the cluster")


def _wanted(seen: ClusterState) -> list[dict[str, Any]]:
    return validating.webhooks(policies=seen.policies_from_cluster)


def _entry(found: Json, wanted: Json) -> Iterator[Finding]:
    name = wanted["name"]
    service = found["clientConfig"].get("service")
    if service is not None and service != wanted["clientConfig"]["service"]:
        there = f"{service.get('namespace')}/{service.get('name')}{service.get('path', '/')}"
        yield error(f"{name} calls the Service {there}, which is not Fairlead's", _INSTALL)
    if found.get("failurePolicy") != wanted["failurePolicy"]:
        consequence = (
            "a policy is stored unjudged while no replica answers"
            if wanted["failurePolicy"] == "Fail"
            else "while no replica answers nobody can create a workload"
        )
        say = warning if wanted["failurePolicy"] == "Fail" else error
        yield say(f"{name} has failurePolicy {found.get('failurePolicy')}: {consequence}", _INSTALL)
    if not found.get("rules"):
        yield warning(f"{name} has no rules: {_WITHOUT[name]}", _INSTALL)
    elif _rules(found) != _rules(wanted):
        yield warning(
            f"{name} asks for other writes than this version: {_less(found, wanted)}", _INSTALL
        )


def _rules(entry: Json) -> set[tuple[str, str, str]]:
    return {
        (group, resource, operation)
        for rule in entry.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for operation in rule["operations"]
    }


def _less(found: Json, wanted: Json) -> str:
    def text(some: set[tuple[str, str, str]]) -> str:
        shown = sorted({f"{verb} {each}" for _, each, verb in some})
        return ", ".join(shown[:5]) + (", …" if len(shown) > 5 else "")

    lacks, more = _rules(wanted) - _rules(found), _rules(found) - _rules(wanted)
    parts = [f"it lacks {text(lacks)}"] if lacks else []
    return "; ".join([*parts, *([f"it has {text(more)} beside"] if more else [])])
