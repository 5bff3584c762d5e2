"""Checks of the webhook configuration: every pod of a run is sent once, and no others."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from webhook import names, suspension
from webhook.applied_by import INSTALL
from webhook.guards import DENY, capacity_guard
from webhook.installation.doctor.cluster_state import (
    Finding,
    ReadKind,
    check,
    error,
    note,
    warning,
)
from webhook.installation.object_kinds import GUARD
from webhook.installation.stored_options import flags
from webhook.interception import EXCLUDED_NAMESPACES, LONGEST_TIMEOUT, OWN_SUFFIX, entry_name
from webhook.judgement.entry_states import ABSENT, ELSEWHERE, FAILS_OPEN, NO_SOURCE, pod_entries
from webhook.judgement.guard_states import changed_parts
from webhook.judgement.reporting.interception import cure_of, unsent_marks
from webhook.placement.label_values import expressions, satisfiable
from webhook.placement.settings import AllowedSetting
from webhook.shortening import first_few
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.judgement.entry_states import Narrowing

    Json = Mapping[str, Any]

_ENABLE: Final = "`fairlead webhook enable`"


@check("interception", ReadKind.POD_RULES, ReadKind.GUARDS)
def interception(state: ClusterState) -> Iterator[Finding]:
    """Check that the configuration exists, is in force, and has safe fields."""
    if state.configuration is None:
        if ReadKind.POD_RULES not in state.unread:
            yield error(
                "there is no webhook configuration: no pod is sent to Fairlead, and no pod "
                "of a run is placed",
                state.reinstall(),
            )
        return
    yield from _disabled(state)
    for entry in state.entries:
        yield from _fields(entry, state)
    yield from _not_in_force(state)
    meant = state.record.fails_open or not state.record.names
    ignored = [entry for entry in state.entries if meant and entry.get("failurePolicy") == "Ignore"]
    unguarded = state.unguarded(ignored, [names.STAMP_GUARD], ["Warn", "Deny"])
    if unguarded and ReadKind.GUARDS not in state.unread:
        yield warning(
            f"{', '.join(unguarded)}: failurePolicy is Ignore, and no guard reports the pods "
            "that it lets through",
            _guard_cure(state),
        )


def _guard_cure(state: ClusterState) -> str:
    # Overlays replace each other, so the cure names those of last time too.
    overlays = " ".join(
        f"--overlay {overlay}" for overlay in (*state.overlays, "fail-open-guarded")
    )
    return state.reinstall(overlays, "--set guards.stamp=warn", "guard-stamp of each source")


@check("tolerations", ReadKind.POD_RULES, ReadKind.POLICIES, needs=ReadKind.GUARDS)
def tolerations(state: ClusterState) -> Iterator[Finding]:
    """Check that tolerations which policies do not allow cannot be added to a pod later."""
    policies = state.compiled.policies if state.compiled else ()
    limiting = [
        policy.name
        for policy in policies
        if policy.enforced
        and any(isinstance(setting, AllowedSetting) for setting in policy.settings)
    ]
    if not limiting:
        return
    # Whatever marks it keeps.
    (shipped_guard,) = capacity_guard((), ())
    guards = {
        key.name: not changed_parts(names.TOLERATIONS_GUARD, guard["spec"], shipped_guard["spec"])
        for key, guard in state.guard_objects.items()
        if key.kind.name == GUARD and key.name.startswith(names.TOLERATIONS_GUARD)
    }
    sound = [name for name, whole in guards.items() if whole]
    uncovered = state.unguarded(state.entries, sound, DENY)
    if uncovered:
        partial = [name for name, whole in guards.items() if not whole]
        what = f"{first_few(partial, 3)} rejects some only" if partial else "no guard rejects that"
        yield warning(
            f"allowedTolerations of policy {first_few(limiting, 3)} is checked when a pod is "
            f"created; others can be added later to pods of {', '.join(uncovered)}: {what}",
            "`fairlead generate guard tolerations | kubectl apply -f -`; add --source for each of "
            "your systems, and --exempt for a queue"
            if state.applied_by.tool == INSTALL
            else state.reinstall(
                values="--set guards.tolerations=true", component="guard-tolerations"
            ),
        )


@check("selectors", ReadKind.POD_RULES)
def selectors(state: ClusterState) -> Iterator[Finding]:
    """No pod is sent twice, and no pod of the cluster's own namespaces is sent."""
    for first, other in combinations(state.entries, 2):
        if _both([first, other]):
            yield warning(
                f"a pod can match both {first['name']} and {other['name']}: it is sent twice",
                f"{state.reinstall()} writes entries that exclude each other",
            )
    for entry in state.entries:
        for namespace in EXCLUDED_NAMESPACES:
            within = {"key": names.NAMESPACE_NAME, "operator": "In", "values": [namespace]}
            reached = [*expressions(entry.get("namespaceSelector") or {}), within]
            if _satisfiable(reached):
                yield error(
                    f"{entry['name']} takes pods of {namespace} too: what the webhook needs to run "
                    "could wait for the webhook",
                    f"{state.reinstall()} writes selectors that leave it out",
                )


def _not_in_force(state: ClusterState) -> Iterator[Finding]:
    """Pods that the installed entries should send, and these do not."""
    live = [entry["name"] for entry in state.entries]
    yield from _unsent_sources(state, live)
    for pod_entry in pod_entries(state.record, state.configuration, state.sources, state.whole, {}):
        if pod_entry.reason == ABSENT:
            # Nothing would be sent by it now.
            idle = pod_entry.entry == entry_name("namespace", 0) and not state.whole
            make = warning if idle else error
            yield make(
                f"{pod_entry.message}: its pods are not sent, and are not placed",
                state.reinstall(),
            )
        elif pod_entry.reason == NO_SOURCE:
            source = pod_entry.entry.removesuffix(OWN_SUFFIX).rpartition("-")[0]
            yield error(
                f"{pod_entry.entry}: {pod_entry.message}",
                f"apply RunSource {source} again; or, if its pods are not to be placed, take the "
                f"entry away: {_without_source(state, source)}",
            )
        elif pod_entry.reason in (ELSEWHERE, FAILS_OPEN):
            yield error(f"{pod_entry.entry}: {pod_entry.message}", state.reinstall())
        for narrowing in pod_entry.narrowings:
            what = f"{pod_entry.entry}: {narrowing.what}"
            if narrowing.meant:
                yield note(what)
            else:
                cure = _widening(narrowing, live.index(pod_entry.entry), state)
                yield error(f"{what}, and are not placed", cure)
    if names.CONTROLLER in state.deployments and not state.record.names:
        yield note(
            f"Deployment {names.NAMESPACE}/{names.CONTROLLER} does not record what is to be "
            "intercepted: an entry of an added source that is deleted is not missed",
            state.reinstall(),
        )


def _without_source(state: ClusterState, source: str) -> str:
    """Return how to install without a source."""
    if state.applied_by.tool != INSTALL or state.options is None:
        return f"remove it from the source of {state.applied_by}"
    rest = tuple(name for name in state.options.sources if name != source)
    options = flags(state.options.model_copy(update={"sources": rest}))
    return f"`fairlead install --reset {options}".rstrip() + "`"


def _widening(narrowing: Narrowing, at: int, state: ClusterState) -> str:
    if narrowing.conditions:
        operation = f'[{{"op": "remove", "path": "/webhooks/{at}/matchConditions"}}]'
        return (
            f"`kubectl patch mutatingwebhookconfiguration {names.WEBHOOK_CONFIGURATION} "
            f"--type=json -p '{operation}'`"
        )
    if narrowing.only:
        return (
            f"{state.reinstall()}; if only these namespaces are meant: `kubectl -n "
            f"{names.NAMESPACE} annotate deployment {names.CONTROLLER} "
            f"{names.INTERCEPTED_NAMESPACES}={narrowing.only}`"
        )
    return state.reinstall()


def _unsent_sources(state: ClusterState, live: Collection[str]) -> Iterator[Finding]:
    """Report added systems without an entry; of one with an entry, missing ones are reported by
    name.
    """
    for row in state.sources.rows:
        entry_names = {entry_name(row.name, number) for number in range(len(row.marks))}
        if row in SHIPPED.rows or entry_names & {*live, *state.record.names}:
            continue
        if unsent := unsent_marks(row.marks, state.entries):
            yield warning(
                f"RunSource {row.name}: no entry of the webhook configuration selects pods with "
                f"{', '.join(map(str, unsent))}: they are not sent, and are not placed",
                cure_of(row.name, state.applied_by),
            )


def _disabled(state: ClusterState) -> Iterator[Finding]:
    assert state.configuration is not None  # noqa: S101  (the one caller has looked)
    current_suspension = suspension.parse_suspension(state.configuration)
    if current_suspension is None:
        silent = [entry["name"] for entry in state.entries if not entry.get("rules")]
        if silent:
            has = "has" if len(silent) == 1 else "have"
            shown = f"{', '.join(silent)} {has} no rules, and no end is recorded"
            yield error(f"{shown}: no pod is sent", _ENABLE)
        return
    for problem in current_suspension.problems:
        yield error(f"the webhook is disabled, and {problem}", _ENABLE)
    if current_suspension.until is None:
        return
    until = current_suspension.until.astimezone().strftime("%a %H:%M:%S %Z")
    if current_suspension.due(state.now):
        yield error(
            f"the webhook was to be enabled again at {until}, and is not: does a controller lead?",
            _ENABLE,
        )
    else:
        yield warning(
            f"the webhook is disabled until {until}: pods of runs are created unplaced",
            f"{_ENABLE}, once the problem is fixed",
        )


def _fields(entry: Json, state: ClusterState) -> Iterator[Finding]:
    name = entry["name"]
    waits = "every creation waits so long for a webhook that does not answer"
    late = "what other webhooks change afterwards is not placed"
    for field, is_wrong, effect in (
        ("timeoutSeconds", entry.get("timeoutSeconds", 10) > LONGEST_TIMEOUT, waits),
        ("reinvocationPolicy", entry.get("reinvocationPolicy") != "IfNeeded", late),
    ):
        if is_wrong:
            yield warning(f"{name} has {field} {entry.get(field)}: {effect}", state.reinstall())
    for rule in entry.get("rules") or ():
        if rule.get("resources") != ["pods"] or rule.get("operations") != ["CREATE"]:
            yield warning(
                f"{name} asks for more than the creation of pods: {rule.get('operations')} of "
                f"{rule.get('resources')}",
                state.reinstall(),
            )
    if entry.get("failurePolicy") == "Ignore":
        yield note(
            f"{name} lets pods through unplaced while no replica answers (failurePolicy: Ignore)"
        )


def _both(entries: list[Json]) -> bool:
    """Return whether a pod in a namespace can match all of them."""
    return all(
        _satisfiable(
            [
                expression
                for entry in entries
                for expression in expressions(entry.get(selector) or {})
            ]
        )
        for selector in ("objectSelector", "namespaceSelector")
    )


def _satisfiable(wanted: list[Any]) -> bool:
    by_key: dict[str, list[Any]] = defaultdict(list)
    for expression in wanted:
        by_key[expression["key"]].append(expression)
    return all(map(satisfiable, by_key.values()))


# The labels of namespaces, each with the one value that it may have.
_OF_NAMESPACES: Final = {
    names.PLACE: names.PLACE_ALL,
    names.DAEMON_SETS: names.DAEMON_SETS_KEEP,
    names.KUEUE: names.KUEUE_KEEP,
}


@check("namespaces", ReadKind.NAMESPACES)
def marked_namespaces(state: ClusterState) -> Iterator[Finding]:
    """Namespaces that are placed as a whole, and namespaces whose label has a wrong value."""
    if state.whole:
        yield note(f"every pod is placed in {', '.join(sorted(state.whole))} ({names.PLACE}: all)")
    for name, labels in sorted(state.namespaces.items()):
        for key, only_value in _OF_NAMESPACES.items():
            if (value := labels.get(key, only_value)) != only_value:
                yield warning(
                    f"namespace {name} has {key}: {value}, which means nothing",
                    f"`kubectl label namespace {name} --overwrite {key}={only_value}`, or take the "
                    f"label away with `kubectl label namespace {name} {key}-`",
                )
