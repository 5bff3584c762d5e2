"""Checks of permissions: of the caller, of both programs, and of authors by the guards."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.installation.doctor.cluster_state import (
    Finding,
    ReadKind,
    Right,
    check,
    error,
    note,
    warning,
)
from webhook.installation.object_kinds import GUARD, GUARD_BINDING
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState

    Json = Mapping[str, Any]

NODES: Final = "--nodes"
_ADMISSION: Final = "admissionregistration.k8s.io"
# The rights that an admin of Fairlead needs, for this command and the others.
WANTED: Final = (
    Right("patch", _ADMISSION, "mutatingwebhookconfigurations", names.WEBHOOK_CONFIGURATION),
    Right("delete", _ADMISSION, "validatingwebhookconfigurations", names.WEBHOOK_CONFIGURATION),
    Right("list", "", "pods"),
    Right("list", "", "namespaces"),
    Right("get", "", "secrets", names.SERVING_SECRET, names.NAMESPACE),
)


def needed(objects: Iterable[Json]) -> dict[str, list[Right]]:
    """Return the rights of each ServiceAccount, by name: all that the objects' roles grant to
    it."""
    roles: dict[tuple[str, str], list[Json]] = {}
    bindings: list[Json] = []
    for each in objects:
        if each["kind"] in ("Role", "ClusterRole"):
            roles[each["kind"], each["metadata"]["name"]] = each.get("rules") or []
        elif each["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            bindings.append(each)
    found: dict[str, list[Right]] = defaultdict(list)
    for binding in bindings:
        namespace = binding["metadata"].get("namespace", "")
        rules = roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]), [])
        granted = [right for rule in rules for right in _of_rule(rule, namespace)]
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount":
                found[subject["name"]] += granted
    return dict(found)


@check("permissions", ReadKind.OWN_RIGHTS, ReadKind.PROGRAMS_RIGHTS)
def permissions(state: ClusterState) -> Iterator[Finding]:
    """Both programs have the rights that they need, and the caller could read everything."""
    missing: dict[str, list[Right]] = defaultdict(list)
    nodes: list[Right] = []
    for account, right in state.missing_rights:
        # No decision depends on the webhook's right to nodes.
        of_nodes = account == names.WEBHOOK and right.resource == "nodes"
        (nodes if of_nodes else missing[account]).append(right)
    if nodes:
        yield warning(
            f"ServiceAccount {names.NAMESPACE}/{names.WEBHOOK} may not "
            f"{'; '.join(map(str, nodes))}: it has {NODES}, and warns of no pod without a node",
            f"{state.reinstall('--nodes', '--set nodes=true')}"
            f"{'' if state.helm_release else ', or the component nodes of the manifests,'} "
            "grants it",
        )
    for account, rights in sorted(missing.items()):
        listed = first_few([*map(str, rights)], 5)
        if account:
            yield error(
                f"ServiceAccount {names.NAMESPACE}/{account} may not {listed}",
                f"{state.reinstall()} writes its roles and bindings again",
            )
        else:
            yield warning(
                f"you may not {listed}",
                "ask an administrator to run this command",
            )
    for what, why in state.unread.items():
        # Few users have the right to the pods/proxy subresource, and a replica may be ending.
        say = note if what is ReadKind.METRICS else warning
        yield say(f"not checked: {what}: {why}", "run it with an administrator's rights")


@check("guards", needs=ReadKind.GUARDS)
def guards(state: ClusterState) -> Iterator[Finding]:
    """Check that the admission policies for what the webhook cannot do exist, with bindings."""
    kinds = (GUARD, GUARD_BINDING)
    shipped = {key: each for key, each in state.expected.items() if key.kind.name in kinds}
    for key, each in shipped.items():
        live = state.guard_objects.get(key)
        if live is None:
            # A webhook outside the cluster is being tried out.
            make = note if state.elsewhere else error
            yield make(
                f"there is no {key}: users who may write Runs can create pods that they "
                "may not create themselves",
                state.reinstall(),
            )
        elif not _within(each["spec"], live["spec"]):
            yield error(
                f"{key} differs from the version that ships, and may not enforce its rules",
                state.reinstall(),
            )
    own = {key: each["spec"] for key, each in state.guard_objects.items() if key not in shipped}
    policies = {key.name for key in state.guard_objects if key.kind.name == GUARD}
    bound = {each["spec"].get("policyName") for each in state.guard_objects.values()}
    cure = "apply it again: fairlead guard --help"
    for key, spec in sorted(own.items()):
        policy = spec.get("policyName")
        if key.kind.name == GUARD:
            if key.name not in bound:
                yield warning(f"no binding names {key}: it does nothing", cure)
        elif policy not in policies:
            yield error(f"{key} names {GUARD} {policy}, which is not there", cure)
        elif not {"Deny", "Warn"} & set(spec.get("validationActions") or ()):
            yield warning(f"{key} neither denies nor warns: its findings are not reported", cure)


def _within(shipped: Any, live: Any) -> bool:
    """Return whether the live value has all that ships; the API server may have added fields."""
    if isinstance(shipped, dict) and isinstance(live, dict):
        return all(key in live and _within(each, live[key]) for key, each in shipped.items())
    if isinstance(shipped, list) and isinstance(live, list):
        return len(shipped) == len(live) and all(map(_within, shipped, live))
    return bool(shipped == live)


def _of_rule(rule: Json, namespace: str) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, name, namespace)
