"""What commands do with the pods that are selected: ask about them, and exit by what is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.dry_run import server_of
from webhook.cli.exit_codes import UNKNOWN, errors_exit, gate
from webhook.cli.output import print_error, print_notes, say
from webhook.errors import UnreadableInput
from webhook.questions.completion import complete_references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.replicas import Replicas
    from webhook.questions.live.focus import Focus
    from webhook.questions.live.live_pods import Answers
    from webhook.questions.offline import Offline
    from webhook.questions.selection import FailOn, Selection
    from webhook.sources.table import SourceTable
    from webhook.workloads.template import PodTemplate


references_argument: Final[Callable[[Any], Any]] = click.argument(
    "words",
    nargs=-1,
    metavar="[TYPE NAME | TYPE/NAME]...",
    shell_complete=complete_references,
)


def asked_server(selection: Selection) -> Server | None:
    """Return how to ask the API server about pods as decided; None if it is not asked."""
    return server_of(selection.kubeconfig) if selection.dry_run else None


def read_files(
    selection: Selection, templates: Callable[[SourceTable], list[PodTemplate]] | None = None
) -> Offline:
    """Read the files, and the cluster where the word `cluster` is given.

    `templates` are those of files that are read already. Raises FairleadError.
    """
    from webhook.questions.selection import read_selected_files

    return read_selected_files(selection, asked_server(selection), templates)


def decide_readable(offline: Offline) -> tuple[list[Replicas], list[str]]:
    """Return the decisions on all readable objects; what cannot be read is printed, and returned.

    Raises UnreadableInput if nothing could be read.
    """
    from webhook.questions.decisions import readable

    decided, problems = readable(offline)
    if problems:
        print_error(UnreadableInput(problems))
    return decided, problems


def code_of_pods(
    wanted: Sequence[FailOn],
    decided: Sequence[Replicas],
    unknown: Iterable[str],
    *,
    failed: bool = False,
) -> int:
    """Return the exit code: FAILED if something of these kinds was found, a rejection, or a refusal
    by the API server, or if it failed for another reason.

    `unknown` has lines about unknown facts; they count with --fail-on alone. Pods without a node
    are named on stderr.
    """
    failure = failed or not all(replicas.admitted for replicas in decided)
    for replicas in decided if "no-node" in wanted else ():
        nodes = replicas.evaluation.nodes
        if nodes and replicas.decision.allowed and nodes.none_left:
            say("no node", f"{replicas.subject}: none of the {nodes.last.total} nodes admits it")
            failure = True
    rooms = {id(replicas.template.source): replicas for replicas in decided if replicas.room}
    for replicas in rooms.values() if "no-room" in wanted else ():
        if replicas.room and replicas.room.is_short:
            source, namespace = replicas.template.source, replicas.arrival.namespace
            say("no room", f"{source.title} in {namespace}: {replicas.room.text}")
            failure = True
    if "warning" in wanted:
        failure |= any(
            replicas.warnings or replicas.decision.result == "not-sent" for replicas in decided
        )
        failure |= any(not (r.room is None or r.room.can_begin) for r in decided)
    return gate(failed=failure, unknown=bool(wanted) and any(unknown))


def answers_or_exit(selection: Selection, focus: Focus | None = None) -> Answers:
    """Return the answers about live objects. An error is printed, and ends the command."""
    from webhook.questions.live.focus import Focus, check_policy
    from webhook.questions.live.live_answers import ask
    from webhook.questions.live.live_objects import parse_references

    targets = parse_references(selection.words, lists=selection.lists)
    with errors_exit(UNKNOWN):
        namespace = selection.namespace
        if not (namespace or selection.everywhere):
            namespace = selection.kubeconfig.namespace()
        answers = selection.kubeconfig.ask(
            lambda client: ask(
                client,
                targets,
                namespace,
                selection.policies,
                selection.nodes,
                selection.plugins,
                labels=selection.selector,
            )
        )
        stamps = [pod.stamp for pod in answers.pods if pod.stamp]
        stamped = [name for stamp in stamps for name in stamp.all_policies]
        check_policy(focus or Focus(), answers.policies, stamped)
    print_notes(answers.notes)
    for reason in answers.unjudged:
        say("unknown", reason, "yellow")
    return answers
