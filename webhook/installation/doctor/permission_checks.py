"""Checks of permissions of the caller and of both ServiceAccounts."""

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
    """The rights of each ServiceAccount, by name: all that the objects' roles grant to it."""
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
    for asked in state.rights:
        if not asked.allowed:
            # No decision depends on these.
            of_nodes = asked.account == names.WEBHOOK and asked.right.resource == "nodes"
            (nodes if of_nodes else missing[asked.account]).append(asked.right)
    if nodes:
        yield warning(
            f"ServiceAccount {names.NAMESPACE}/{names.WEBHOOK} may not "
            f"{'; '.join(map(str, nodes))}: it has {NODES}, and warns of no pod without a node",
            f"{state.reinstall('--nodes', '--set nodes=true')}"
            f"{'' if state.helm_release else ', or the component nodes of the manifests,'} "
            "grants it",
        )
    for account, rights in sorted(missing.items()):
        listed = "; ".join(map(str, rights[:5])) + (
            f" and {len(rights) - 5} more" * (len(rights) > 5)
        )
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


def _of_rule(rule: Json, namespace: str) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, name, namespace)
