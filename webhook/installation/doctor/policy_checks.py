"""Checks of what may be written, and by whom.

The policies, the webhook that validates them when they are written, the guards, and the permissions
of the caller and of both programs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names, validating
from webhook.cluster_objects.served_definitions import (
    OLDER_CURE,
    newer_objects,
    older_than,
)
from webhook.installation.doctor.cluster_state import (
    Finding,
    ReadKind,
    check,
    error,
    note,
    warning,
)
from webhook.installation.object_kinds import CRD, GUARD, GUARD_BINDING, key_of
from webhook.installation.rights import Right
from webhook.interception import GUARD as RECORDED_GUARD
from webhook.interception import expected_entries
from webhook.judgement.entry_states import NARROWED, validating_entries, writes
from webhook.judgement.guard_states import CHANGED, guard_states
from webhook.judgement.set_judgement import Objects, judge_set
from webhook.judgement.together.warnings import IN_TIME
from webhook.policy import policy_documents
from webhook.policy.findings import condensed
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.installation.object_kinds import Key
    from webhook.judgement.entry_states import EntryState
    from webhook.judgement.set_judgement import SetJudgement
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.reader import Documents

    Json = Mapping[str, Any]
    from collections.abc import Iterable, Mapping

_CONFIG_MAP: Final = f"ConfigMap {names.NAMESPACE}/{names.POLICIES_CONFIG_MAP}"
_SHOWN_POLICIES = 5
_SERVES = "until then the set serves with it"
_UNTIL = "until then the last good set is used, and a webhook that restarts is never ready"
_WHAT: Final = f"ValidatingWebhookConfiguration {names.WEBHOOK_CONFIGURATION}"
_DELETE: Final = f"kubectl delete validatingwebhookconfiguration {names.WEBHOOK_CONFIGURATION}"
# By entry: what happens without it.
_WITHOUT: Final = {
    validating.POLICIES: "policies are stored without validation, and a set that does not "
    "compile is reported only afterwards",
    validating.WORKLOADS: "users who create a Job get no warnings about its pods",
}


class _Place(NamedTuple):
    """Where policies are stored, and what to do about them there."""

    name: str
    read: Callable[[Mapping[str, bytes]], Documents[PolicyDocument]]
    absent: str
    bring: str
    mend: str
    all: str


_IN_CLUSTER = _Place(
    "the cluster",
    Objects().documents,
    "the cluster has no definitions of policies: the webhook takes them from there",
    "`kubectl apply --server-side -f manifests/crds`",
    "mend it, or the object that it names",
    "fairlead check cluster --nodes cluster lists all of them",
)


def _in_config_map(state: ClusterState) -> _Place:
    install = state.reinstall(
        "--policies-from-files --policies DIR",
        r"--set-file 'policyFiles.NAME\.yaml=FILE'",
        "policies-from-files",
    )
    return _Place(
        _CONFIG_MAP,
        policy_documents.parse,
        f"there is no {_CONFIG_MAP}: pods of the webhook cannot start",
        install,
        f"mend it, then fairlead check DIR and {install}",
        "fairlead check DIR --nodes cluster lists all of them",
    )


@check(
    "policies",
    ReadKind.DEPLOYMENTS,
    ReadKind.SERVED,
    ReadKind.NODES,
    ReadKind.CLASSES,
    needs=ReadKind.POLICIES,
)
def policies(state: ClusterState) -> Iterator[Finding]:
    """Check that the policies can be read and have no errors or warnings, with these nodes."""
    outside = not (state.in_cluster or state.policies_from_cluster)
    if outside or ReadKind.POLICIES in state.absent:
        return
    place = _IN_CLUSTER if state.policies_from_cluster else _in_config_map(state)
    if state.policies is None:
        yield error(place.absent, place.bring)
    elif newer := _newer(state):
        yield error(older_than(newer), OLDER_CURE)
    else:
        # Without a node every policy would leave none; the condition Satisfiable is Unknown then.
        set_judgement = judge_set(
            place.read(state.policies),
            IN_TIME,
            now=state.now,
            nodes=state.nodes or None,
            classes=state.classes,
        )
        yield from _judged(set_judgement, place)


def _newer(state: ClusterState) -> Mapping[str, str]:
    """Return what policies of the cluster have, by place, that only later versions know."""
    if not state.policies_from_cluster:
        return {}
    definitions = {
        key.name: (shipped, live)
        for key, shipped in state.expected.items()
        if key.kind.name == CRD and (live := state.definitions.get(key.name))
    }
    return newer_objects(definitions, state.policies or {})


def _judged(set_judgement: SetJudgement, place: _Place) -> Iterator[Finding]:
    wrong = [finding for finding in set_judgement.findings if finding.severity == "error"]
    doubtful = [
        finding
        for finding in set_judgement.findings
        if finding.severity == "warning" and set_judgement.policies
    ]
    cure = f"{place.mend}; {_SERVES if set_judgement.policies else _UNTIL}"
    for make, cures, some in (
        (error, cure, wrong),
        (warning, place.all, condensed(doubtful)),
    ):
        for finding in some[:_SHOWN_POLICIES]:
            yield make(f"{place.name}: {finding}", cures)
        if len(some) > _SHOWN_POLICIES:
            yield note(f"{len(some) - _SHOWN_POLICIES} more {some[0].severity}s: {place.all}")
    if set_judgement.policies and not set_judgement.policies.policies:
        yield note(f"{place.name} has no policy: pods are stamped, and stay as they are")


@check("judgement", ReadKind.DEPLOYMENTS, ReadKind.JUDGING, ReadKind.JUDGED)
def judgement(state: ClusterState) -> Iterator[Finding]:
    """Policies are validated on write, workloads get warnings, and no user is locked out."""
    if state.refused_policies:
        yield error(
            f"no policy can be written: {state.refused_policies}",
            f"fix what is reported of the webhook here; until then `{_DELETE}` lets policies "
            f"be stored without validation, and {state.reinstall()} restores it",
        )
    if state.judging is None:
        if ReadKind.JUDGING not in state.unread:
            without = "; ".join(_WITHOUT[webhook["name"]] for webhook in _expected_webhooks(state))
            # A webhook outside the cluster was not installed.
            make, cure = (warning, state.reinstall()) if state.in_cluster else (note, "")
            yield make(f"there is no {_WHAT}: {without}", cure)
        return
    if ReadKind.DEPLOYMENTS in state.unread:
        return  # they show whether policies are validated
    live = {entry["name"]: entry for entry in state.judging_entries}
    states = validating_entries(state.record, state.judging, state.sources, {})
    judged = {entry_state.entry: entry_state for entry_state in states}
    for wanted in _expected_webhooks(state):
        entry = live.pop(wanted["name"], None)
        if entry is None:
            yield warning(
                f"{_WHAT} has no entry {wanted['name']}: {_WITHOUT[wanted['name']]}",
                state.reinstall(),
            )
        else:
            yield from _entry(entry, wanted, judged.get(wanted["name"]), state.reinstall())
    if live.get(validating.POLICIES, {}).get("rules") and state.in_cluster:
        yield error(
            f"{validating.POLICIES} has policies in the cluster judged, and the webhook takes its "
            "own from files: none can be written",
            f"{state.reinstall('--policies-from-files', component='policies-from-files')} takes "
            "the entry away",
        )


def _expected_webhooks(state: ClusterState) -> list[dict[str, Any]]:
    return validating.webhooks(policies=state.policies_from_cluster, table=state.sources)


def _entry(entry: Json, wanted: Json, judged: EntryState | None, cure: str) -> Iterator[Finding]:
    name = wanted["name"]
    alike = writes(entry) == writes(wanted)
    if judged and judged.reason and (alike or judged.reason != NARROWED) and entry.get("rules"):
        yield error(f"{name}: {judged.message}", cure)
    if (entry.get("failurePolicy"), wanted["failurePolicy"]) == ("Fail", "Ignore"):
        what = "while no replica answers, no workload can be created"
        yield error(f"{name} has failurePolicy Fail: {what}", cure)
    if not entry.get("rules"):
        yield warning(f"{name} has no rules: {_WITHOUT[name]}", cure)
    elif not alike:
        yield warning(
            f"{name} asks for other writes than this version: {_less(entry, wanted)}", cure
        )


def _less(entry: Json, wanted: Json) -> str:
    live_writes, ships = writes(entry), writes(wanted)
    return "; ".join(
        (
            f"{words} "
            f"{first_few(sorted({f'{verb} {kind}' for _, kind, verb in some}), _SHOWN_POLICIES)}"
        )
        for words, some in (("it lacks", ships - live_writes), ("it also has", live_writes - ships))
        if some
    )


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
    for document in objects:
        if document["kind"] in ("Role", "ClusterRole"):
            roles[document["kind"], document["metadata"]["name"]] = document.get("rules") or []
        elif document["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            bindings.append(document)
    rights_by_account: dict[str, list[Right]] = defaultdict(list)
    for binding in bindings:
        namespace = binding["metadata"].get("namespace", "")
        rules = roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]), [])
        granted = [right for rule in rules for right in _of_rule(rule, namespace)]
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount":
                rights_by_account[subject["name"]] += granted
    return dict(rights_by_account)


@check("permissions", ReadKind.OWN_RIGHTS, ReadKind.PROGRAMS_RIGHTS)
def permissions(state: ClusterState) -> Iterator[Finding]:
    """Both programs have the rights that they need, and so has the caller."""
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
            f"{state.reinstall('--nodes', '--set nodes=true', 'nodes')} grants it",
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


@check("guards", needs=ReadKind.GUARDS)
def guards(state: ClusterState) -> Iterator[Finding]:
    """Check that the admission policies for what the webhook cannot do exist, with bindings."""
    kinds = (GUARD, GUARD_BINDING)
    shipped = {
        key: guard_object for key, guard_object in state.expected.items() if key.kind.name in kinds
    }
    for key in shipped:
        if key not in state.guard_objects:
            # A webhook outside the cluster is being tried out.
            make = note if state.elsewhere else error
            yield make(
                f"there is no {key}: users who may write Runs can create pods that they "
                "may not create themselves",
                state.reinstall(),
            )
    yield from _not_in_force(state, shipped)
    custom_specs = {
        key: guard_object["spec"]
        for key, guard_object in state.guard_objects.items()
        if key not in shipped
    }
    policies = {key.name for key in state.guard_objects if key.kind.name == GUARD}
    bound = {
        guard_object["spec"].get("policyName") for guard_object in state.guard_objects.values()
    }
    cure = "apply it again: fairlead generate guard --help"
    for key, spec in sorted(custom_specs.items()):
        policy = spec.get("policyName")
        if key.kind.name == GUARD:
            if key.name not in bound:
                yield warning(f"no binding names {key}: it does nothing", cure)
        elif policy not in policies:
            yield error(f"{key} names {GUARD} {policy}, which is not there", cure)
        elif not {"Deny", "Warn"} & set(spec.get("validationActions") or ()):
            yield warning(f"{key} neither denies nor warns: its findings are not reported", cure)


def _not_in_force(state: ClusterState, shipped: Mapping[Key, Json]) -> Iterator[Finding]:
    """Report guards that are recorded or ship, and are not in force."""
    kinds: dict[str, dict[str, Json]] = {kind: {} for kind in (GUARD, GUARD_BINDING)}
    for key, guard_object in state.guard_objects.items():
        kinds[key.kind.name][key.name] = guard_object
    live = [entry["name"] for entry in state.entries]
    entry_states = guard_states(
        sorted({*state.record.of_kind(RECORDED_GUARD), *(key.name for key in shipped)}),
        kinds[GUARD],
        [*kinds[GUARD_BINDING].values()],
        expected_entries(state.record, live, state.sources),
        state.whole,
        state.expected.get(key_of(GUARD, names.RUN_AUTHORS_GUARD)),
    )
    missing = {key.name for key in shipped if key not in state.guard_objects}
    for guard in entry_states:
        if guard.reason and guard.entry not in missing:
            cure = state.reinstall()
            if guard.reason in (CHANGED, NARROWED):
                cure = f"delete it with kubectl, then {cure}: an apply keeps what others have added"
            yield error(f"{guard.entry}: {guard.message}", cure)


def _of_rule(rule: Json, namespace: str) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or ("",):
                    yield Right(verb, group, resource, name, namespace)
