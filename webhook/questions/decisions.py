"""Decisions about the pods of objects, and what is not known about them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from webhook.admission.workload_warnings import mark_on
from webhook.decision.arrival import OF_DAEMON_SET, keeps_placement
from webhook.decision.audit import NOT_JUDGED, NOT_JUDGED_TEXT
from webhook.errors import InvalidPod, UnreadableInput
from webhook.evaluation.replicas import Replicas, evaluate_template
from webhook.evaluation.templates import run_faults
from webhook.evaluation.undecided import undecided
from webhook.placement import pod as pods
from webhook.policy.findings import parse_path, path_text
from webhook.policy.refused_pods import classes_of
from webhook.questions.plugins_option import PLUGINS
from webhook.shortening import first_few
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.workload_faults import count_faults, template_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.evaluation.surveys import Unknown
    from webhook.evaluation.world import Evaluation
    from webhook.pod_schema.field_checks import Fault
    from webhook.questions.offline import Offline
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

# Maximum number of classes that a note names.
_NAMED: Final = 3
# Where objects are given that the API server reads.
_OBJECTS: Final = "with -f or --namespaces"
NODES_DECIDE: Final = (
    "a webhook that watches nodes rejects pods whose node does not meet a requirement"
)


def decisions(offline: Offline, passed: list[str] | None = None) -> list[Replicas]:
    """Return the decision for every pod of every template; equal pods of a template are grouped.

    Raises UnreadableInput with all errors of templates: a wrong shape, or pods that the API server
    would reject. With `passed`, errors are added to it instead, and all other pods are evaluated.
    """
    found: list[Replicas] = []
    problems: list[str] = [] if passed is None else passed
    for template in offline.templates:
        wrong, doubtful = faults_of(template, offline.policies.sources)
        # Each template of an object repeats the errors of the object.
        problems += [line for line in wrong if line not in problems]
        if wrong:
            continue
        try:
            namespace = template.source.namespace
            alone = template.source.is_labelled and not template.is_pod
            for each in evaluate_template(offline.world, template, namespace, doubtful):
                if alone and each.decision.identity is None:
                    each = replace(each, doubts=[*each.doubts, mark_on(template.source.kind)])
                found.append(each)
        except InvalidPod as error:
            problems.append(misshapen(template, error))
    if problems and passed is None:
        raise UnreadableInput(problems)
    return found


def readable(offline: Offline) -> tuple[list[Replicas], list[str]]:
    """Return the decisions on all readable objects, and lines about the others.

    Raises UnreadableInput if nothing could be read.
    """
    problems = [*offline.problems]
    found = decisions(offline, problems)
    if not found:
        raise UnreadableInput(problems)
    return found, problems


def faults_of(template: PodTemplate, sources: SourceTable) -> tuple[list[str], list[str]]:
    """Errors, then warnings, of a template by the pod schema; of a Run, those of all its pods.

    None for an object from an API server, which has validated it, unless it is a Run.
    """
    source = template.source
    lines: dict[str, list[str]] = {"error": [], "warning": []}
    found: Iterable[Fault] = ()
    if source.is_own_run:
        found = run_faults(source)
    elif source.file != ANSWERED:
        found = template_faults(template, sources)
    for each in found:
        title = f" {source.title}:" if each.severity == "error" else ""
        lines[each.severity].append(_line(source, each, title))
    return lines["error"], lines["warning"]


def miscounted(template: PodTemplate, sources: SourceTable) -> list[str]:
    """Lines about values that are no number of pods; none for an object from an API server."""
    source = template.source
    found = count_faults(template, sources) if source.file != ANSWERED else ()
    return [_line(source, each, f" {source.title}:") for each in found]


def _line(source: Object, fault: Fault, title: str) -> str:
    place = source.place(fault.path, at_key=fault.at_key)
    return f"{place}:{title} {path_text(fault.path)}: {fault.message}"


def misshapen(template: PodTemplate, error: InvalidPod) -> str:
    """Return a line about a field of a template with the wrong shape, with its place and the
    cure."""
    source = template.source
    path = template.path_in_object(parse_path(error.field))
    _, _, what = str(error).partition(": ")
    if what.startswith("want a string"):
        what += "; put it in quotes"
    return f"{source.place(path)}: {source.title}: {path_text(path)}: {what}"


def unknown_facts(decided: Sequence[Replicas]) -> Iterator[str]:
    """Yield a line for each fact that is unknown, and on which an answer depends.

    Of a DaemonSet's pods these are nodes, for which the webhook may reject them. The API server
    merges a RuntimeClass into pods, and may add requests of a LimitRange, before policies match.
    """
    for each in decided:
        found = each.evaluation
        if found.world.cluster.node is None and depends_on_node(each):
            yield f"{each.subject}: {NODES_DECIDE}; the nodes are unknown here: give --nodes"
        unknown = [*undecided(found)]
        for one in unknown:
            yield f"{each.subject}: what policies decide is unknown: {_with_cure(one)}"
        if not unknown and (why := unknown_nodes(found)):
            yield f"{each.subject}: which nodes admit it is unknown: {why}"
        if owner := found.unread_selector:
            yield (
                f"{each.subject}: it is unknown whether a label of a policy takes the pod out of "
                f"the selector of {owner}, which is not read; give it {_OBJECTS}"
            )
        if tested := found.unread_defaults:
            yield (
                f"{each.subject}: policies match by {', '.join(tested)}, which a LimitRange of "
                f"namespace {each.arrival.namespace} may add, and LimitRanges are not read; give "
                f"them {_OBJECTS}"
            )
        audited = each.decision.audited
        if audited and NOT_JUDGED in audited.alone.values():
            yield f"{each.subject}: policies under Audit are {NOT_JUDGED_TEXT}"
    yield from unlisted_classes(decided)
    yield from not_asked(each.evaluation for each in decided)


def unknown_nodes(found: Evaluation) -> str:
    """Return why it is unknown which nodes admit the pod, with the cure; empty if it is known."""
    if not found.nodes or not found.allowed:
        return ""
    unread = found.nodes.unread
    return _with_cure(unread.unknown) if unread.what else ""


def _with_cure(unknown: Unknown) -> str:
    return f"{unknown.reason}; {unknown.cure(_OBJECTS, PLUGINS)}"


def not_asked(found: Iterable[Evaluation]) -> list[str]:
    """Return a line for each reason why the API server did not say whether it takes a pod."""
    unknown = dict.fromkeys(each.answer.unknown for each in found if each.answer.unknown)
    return [f"it is unknown whether the API server takes the pods: {each}" for each in unknown]


def asked_alone(decided: Iterable[Replicas]) -> Iterator[str]:
    """Yield a line for each group of equal pods of which the API server was asked about one."""
    for each in decided:
        if each.count > 1 and each.evaluation.world.server and each.admitted:
            yield (
                f"{each.subject}: the API server takes one of these {each.count} pods; whether a "
                "quota takes all is not known"
            )


def unlisted_classes(decided: Iterable[Replicas]) -> Iterator[str]:
    """Classes that pods name, of a kind that may not be listed in the cluster that was asked."""
    unknown: dict[str, set[str]] = {}
    for each in decided:
        placement, classes = each.evaluation.placement, each.evaluation.world.classes
        for _, kind, name in classes_of(placement) if placement else ():
            if classes is not None and kind not in classes:
                unknown.setdefault(kind, set()).add(name)
    for kind, names in sorted(unknown.items()):
        yield (
            f"it is unknown whether the cluster has the {kind} {first_few(sorted(names), _NAMED)}; "
            f"without it pods are rejected: ask as a user who may list each {kind}"
        )


def depends_on_node(replicas: Replicas) -> bool:
    """Return whether the pods are admitted without a look at their node, which may exclude them.

    Only pods of a DaemonSet: their controller has chosen the node.
    """
    held, arrival = replicas.decision.placement, replicas.arrival
    if held is None or not replicas.decision.allowed:
        return False
    own = pods.parse_pod(arrival.pod)
    by_daemon_set = replicas.template.count is None or (
        keeps_placement(arrival, own) == OF_DAEMON_SET
    )
    return by_daemon_set and (
        (held.node_selector, held.required) != (own.node_selector, own.required)
    )
