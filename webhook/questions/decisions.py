"""Decisions about the pods of objects, and what is not known about them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from webhook.admission.workload_warnings import mark_on
from webhook.decision.arrival import may_have_history
from webhook.errors import InvalidPod, UnreadableInput
from webhook.evaluation.audits import NODES_DECIDE
from webhook.evaluation.dry_run import describe_difference
from webhook.evaluation.replicas import Replicas, evaluate_template
from webhook.evaluation.room import with_room
from webhook.evaluation.templates import run_faults
from webhook.policy.findings import parse_path, path_text
from webhook.questions.kept_decisions import KeptDecisions, ObjectAnswer
from webhook.questions.plugins_option import PLUGINS
from webhook.shortening import first_few
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.workload_faults import count_faults, template_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.decision.arrival import Arrival
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.surveys import Unknown
    from webhook.evaluation.world import World
    from webhook.pod_schema.field_checks import Fault
    from webhook.questions.offline import Offline
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate

# Maximum number of classes that a note names.
_NAMED: Final = 3
NOT_ASKED: Final = "the API server was not asked whether it takes"
PODS: Final = "the pods as they would be (add --dry-run=server)"
_AS_WRITTEN: Final = "the objects as written (kubectl create --dry-run=server)"
# Where objects are given that the API server reads.
_OBJECTS: Final = "with -f or --namespaces"


def decisions(
    offline: Offline, passed: list[str] | None = None, kept: KeptDecisions | None = None
) -> list[Replicas]:
    """Return the decision for every pod of every template; equal pods of a template are grouped.

    Raises UnreadableInput with all errors of templates: a wrong shape, or pods that the API server
    would reject. With `passed`, errors are added to it instead, and all other pods are evaluated.
    `kept` may have the answers of the question before.
    """
    groups = [list(group) for _, group in groupby(offline.templates, lambda t: id(t.source))]
    answers = (kept or KeptDecisions()).answers(offline, groups, _of_object)
    problems: list[str] = [] if passed is None else passed
    for answer in answers:
        problems += [line for line in answer.problems if line not in problems]
    if problems and passed is None:
        raise UnreadableInput(problems)
    return with_room([replicas for answer in answers for replicas in answer.replicas])


def _of_object(world: World, templates: Sequence[PodTemplate]) -> ObjectAnswer:
    problems: list[str] = []
    replica_groups: list[Replicas] = []
    arrivals: list[Arrival] = []
    for template in templates:
        wrong, doubtful = faults_of(template, world.policies.sources)
        # Each template of an object repeats the errors of the object.
        problems += [line for line in wrong if line not in problems]
        if wrong:
            continue
        try:
            namespace = template.source.namespace
            alone = template.source.is_labelled and not template.is_pod
            for replicas in evaluate_template(
                world, template, namespace, doubtful, arrivals=arrivals
            ):
                if alone and replicas.decision.identity is None:
                    replicas = replace(
                        replicas, doubts=[*replicas.doubts, mark_on(template.source.kind)]
                    )
                replica_groups.append(replicas)
        except InvalidPod as error:
            problems.append(misshapen(template, error))
    return ObjectAnswer(templates, replica_groups, problems, arrivals)


def readable(offline: Offline) -> tuple[list[Replicas], list[str]]:
    """Return the decisions on all readable objects, and lines about the others.

    Raises UnreadableInput if nothing could be read.
    """
    problems = [*offline.problems]
    replica_groups = decisions(offline, problems)
    if not replica_groups:
        raise UnreadableInput(problems)
    return replica_groups, problems


def faults_of(template: PodTemplate, sources: SourceTable) -> tuple[list[str], list[str]]:
    """Errors, then warnings, of a template by the pod schema; of a Run, those of all its pods.

    None for an object from an API server, which has validated it, unless it is a Run.
    """
    source = template.source
    lines: dict[str, list[str]] = {"error": [], "warning": []}
    faults: Iterable[Fault] = ()
    if source.is_own_run:
        faults = run_faults(source)
    elif source.file != ANSWERED:
        faults = template_faults(template, sources)
    for fault in faults:
        title = f" {source.title}:" if fault.severity == "error" else ""
        lines[fault.severity].append(_line(source, fault, title))
    return lines["error"], lines["warning"]


def miscounted(template: PodTemplate, sources: SourceTable) -> list[str]:
    """Lines about values that are no number of pods; none for an object from an API server."""
    source = template.source
    faults = count_faults(template, sources) if source.file != ANSWERED else ()
    return [_line(source, fault, f" {source.title}:") for fault in faults]


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
    for replicas in decided:
        evaluation = replicas.evaluation
        if evaluation.depends_on_node:
            yield f"{replicas.subject}: {NODES_DECIDE}; the nodes are unknown here: give --nodes"
        yield from (f"{replicas.subject}: {line}" for line in undecided_facts(replicas))
        if not replicas.undecided and (why := unknown_nodes(evaluation)):
            yield f"{replicas.subject}: which nodes admit it is unknown: {why}"
        if tested := evaluation.unread_defaults:
            yield (
                f"{replicas.subject}: policies match by {', '.join(tested)}, which a LimitRange of "
                f"namespace {replicas.arrival.namespace} may add, and LimitRanges are not read; "
                f"give them {_OBJECTS}"
            )
        yield from (f"{replicas.subject}: {line}" for line in unjudged_policies(evaluation))
    yield from unlisted_classes(decided)
    yield from not_asked(replicas.evaluation for replicas in decided)


def undecided_facts(decided: Replicas) -> list[str]:
    """Return a line, with the cure, for each fact that decides about pods and is not known."""
    return [
        f"what policies decide is unknown: {_with_cure(unknown_fact)}"
        for unknown_fact in decided.undecided
    ]


def unjudged_policies(evaluation: Evaluation) -> Iterator[str]:
    """Yield a line for each reason why the effect of policies under Audit on a pod is unknown."""
    by_reason: dict[str, list[str]] = {}
    for policy, effect in evaluation.audited.notable.items() if evaluation.audited else ():
        if effect.unknown:
            by_reason.setdefault(effect.unknown, []).append(policy)
    for why, policies in by_reason.items():
        who = first_few(policies, _NAMED)
        yield f"what enforcing {who} would do is unknown: {why}"


def unknown_nodes(evaluation: Evaluation) -> str:
    """Return why it is unknown which nodes admit the pod, with the cure; empty if it is known."""
    if not evaluation.nodes or not evaluation.allowed:
        return ""
    unread = evaluation.nodes.unread
    return _with_cure(unread.unknown) if unread.what else ""


def _with_cure(unknown: Unknown) -> str:
    return f"{unknown.reason}; {unknown.cure(_OBJECTS, PLUGINS)}"


def not_asked(evaluations: Iterable[Evaluation]) -> list[str]:
    """Return a line for each reason why the API server did not say whether it takes a pod."""
    unknown = dict.fromkeys(
        evaluation.answer.unknown for evaluation in evaluations if evaluation.answer.unknown
    )
    return [f"it is unknown whether the API server takes the pods: {reason}" for reason in unknown]


def remarks(decided: Sequence[Replicas]) -> Iterator[str]:
    """Yield what an answer leaves open: what the API server was not asked, and the fallbacks that
    never apply to pods."""
    for replicas in decided:
        for line in ignored_fallbacks(replicas):
            yield f"{replicas.subject}: {line}"
    yield from asked_alone(decided)
    yield from unasked(decided)


def ignored_fallbacks(decided: Replicas) -> Iterator[str]:
    """Yield a line if fallbacks of policies that match never apply to pods: they have no history.

    Then --history does not change what happens to them.
    """
    policies, kind = decided.evaluation.world.policies, decided.template.source.kind
    decision = decided.decision
    matching = {*decision.policies, *(decision.audited.policies if decision.audited else ())}
    ignored = [
        policy.name for policy in policies.policies if policy.fallbacks and policy.name in matching
    ]
    if ignored and not may_have_history(decided.arrival.pod, kind, policies.sources):
        yield (
            f"the fallback of {first_few(ignored, _NAMED)} never applies: only pods of Runs that "
            "Fairlead's own controller creates have a history"
        )


def unasked(decided: Iterable[Replicas]) -> Iterator[str]:
    """Yield one line if the API server was not asked about all of the pods, and of the objects in
    files that make them."""
    decided = list(decided)
    written = [replicas for replicas in decided if replicas.template.source.file != ANSWERED]
    missing = [PODS] if any(not replicas.evaluation.world.server for replicas in decided) else []
    if any(not replicas.template.is_pod for replicas in written):
        missing.append(_AS_WRITTEN)
    if missing:
        yield f"{NOT_ASKED} {' or '.join(missing)}"


def asked_alone(decided: Iterable[Replicas]) -> Iterator[str]:
    """Yield a line for each group of equal pods that the API server takes, if it was asked about
    one of several, or about another than the one that comes."""
    for replicas in decided:
        evaluation = replicas.evaluation
        if not (evaluation.world.server and replicas.admitted) or evaluation.answer.unknown:
            continue
        several = replicas.count > 1
        limits = [
            "whether a quota takes all is not known" if several else "",
            describe_difference(replicas.arrival.pod),
        ]
        if any(limits):
            which = f"one of these {replicas.count} pods" if several else "the pod"
            taken = f"{replicas.subject}: the API server takes {which}"
            yield "; ".join(filter(None, (taken, *limits)))


def unlisted_classes(decided: Iterable[Replicas]) -> Iterator[str]:
    """Classes that pods name, of a kind that may not be listed in the cluster that was asked."""
    unknown: dict[str, set[str]] = {}
    for replicas in decided:
        for kind, name in replicas.evaluation.unlisted:
            if replicas.evaluation.world.classes is not None:
                unknown.setdefault(kind, set()).add(name)
    for kind, class_names in sorted(unknown.items()):
        yield (
            f"it is unknown whether the cluster has the {kind} "
            f"{first_few(sorted(class_names), _NAMED)}; without it pods are rejected: ask as a "
            f"user who may list each {kind}"
        )
