"""`fairlead explain`: explain a pod's placement by policy and field."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from webhook import names
from webhook.cli.exit_codes import DONE, UNKNOWN
from webhook.cli.options import cluster_options
from webhook.cli.output import READER_FORMS, output_option, print_notes, print_result
from webhook.cli.selection import (
    answers_or_exit,
    asked_server,
    code_of_pods,
    decide_readable,
    read_files,
    references_argument,
)
from webhook.cli.short_help import Command
from webhook.questions.completion import members_of, names_of
from webhook.questions.selection import Selection
from webhook.settings import ObjectName, settings_options
from webhook.text.documents import as_finding

if TYPE_CHECKING:
    from webhook.questions.live.focus import Focus


@click.command("explain", cls=Command)
@references_argument
@settings_options(Selection)
@click.option(
    "--policy",
    type=ObjectName(),
    default="",
    metavar="NAME",
    shell_complete=names_of(names.PLACEMENT_POLICIES),
    help="Only this policy: whether it matches, the condition that fails, and the result of "
    "its settings.",
)
@click.option(
    "--field",
    default="",
    metavar="PATH",
    shell_complete=members_of("webhook.placement.schema.placement", "SETTABLE"),
    help="Only this field, such as tolerations, nodeSelector.pool or "
    "'tolerations[nvidia.com/gpu]': which policy set it, which policy was overridden, and "
    "which policies could set it but do not match.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also list each policy that does not match, if there are more than ten.",
)
@cluster_options
@output_option(
    "json and yaml: everything, such as all nodes by name, and the whole patch.",
    READER_FORMS,
    report="Explanation",
)
def command(selection: Selection, policy: str, field: str, every: bool, output: str) -> None:
    """Explain the placement of pods, in a cluster or from files.

    For each pod, the command shows: its identity; each policy, with the condition that fails if it
    does not match; each field, with the policy that set it or was overridden, and the reason; with
    --nodes, why each node does not admit the pod.

    For a live pod, the command also shows what policies did at creation (from the pod's stamp),
    and how the pod differs from today's policies. Today's policies are applied to the pod as its
    author wrote it: the template of its owner, else the file it was applied from, else the fields
    that no policy set. For a Job, Deployment, Run or other workload, it shows what new pods would
    get, and which live pods differ.

    \b
    Examples:
      fairlead explain pod train-0 -n research
      fairlead explain job/train --nodes cluster
      fairlead explain pods -l team=vision -A
      fairlead explain pod train-0 --field tolerations
      fairlead explain pod train-0 --field nodeSelector.pool
      fairlead explain deployment web --policy spot-workers
      fairlead explain pod train-0 --policies policies/
      fairlead explain -f job.yaml --policies policies/ --nodes nodes.yaml
      kubectl get tfjob mnist -o yaml | fairlead explain -f - --policies cluster

    \b
    Exit codes:
      0  with -f: every pod would be admitted; live: every pod matches today's policies; with
         --fail-on, nothing of that kind was found
      1  with -f: a pod would be rejected, also for a class that the cluster does not have, a
         template is wrong, or a file or an object cannot be read;
         live: a pod differs, would be rejected, has no stamp, or is not sent to the webhook,
         or what its author wrote may not be read;
         with --fail-on, something of that kind was found
      2  wrong usage, or no such policy; the cluster did not answer; live: no such object, or a
         pod cannot be judged (stderr names it), and all others match; with --fail-on, none was
         found, and a fact is unknown that could change the answer
    """
    from webhook.questions.live.focus import Focus, field_path, unknown_field

    path = field_path(field)
    if path and (what := unknown_field(path)):
        raise click.UsageError(f"--field {field}: {what}")
    focus = Focus(policy, path, every)
    look = _live if selection.live else _files
    sys.exit(look(selection, focus, output))


def _live(selection: Selection, focus: Focus, output: str) -> int:
    from webhook.questions.decisions import not_asked, remarks
    from webhook.questions.live import report

    answers = answers_or_exit(selection, focus)
    if server := asked_server(selection):
        answers = answers.asking(server)
    decided = answers.replicas
    unknown = not_asked(replicas.evaluation for replicas in decided)
    print_notes([*unknown, *remarks(decided)])
    print_result(
        output,
        json=lambda: report.document(answers, focus),
        text=lambda: report.lines(answers, focus),
        names=lambda: [answer.source.reference for answer in answers.answers],
    )
    unknown += answers.notes
    code = code_of_pods(selection.fail_on, decided, unknown, failed=not answers.same)
    return UNKNOWN if code == DONE and answers.unjudged else code


def _files(selection: Selection, focus: Focus, output: str) -> int:
    from webhook.questions.decisions import remarks, unknown_facts
    from webhook.questions.live.focus import check_policy
    from webhook.questions.live.report import focused_lines

    offline = read_files(selection)
    check_policy(focus, offline.policies, ())
    decided, problems = decide_readable(offline)
    unknown = [*offline.describe_unknown(), *unknown_facts(decided)]
    print_notes([*unknown, *remarks(decided)])
    print_result(
        output,
        json=lambda: {
            "set": offline.policies.hash,
            "pods": [focus.document(replicas, offline.policies) for replicas in decided],
            "findings": [*map(as_finding, problems)],
            "unread": [*offline.unread],
        },
        text=lambda: focused_lines(decided, offline.policies, focus),
        names=lambda: [replicas.template.source.reference for replicas in decided],
    )
    return code_of_pods(selection.fail_on, decided, unknown, failed=bool(problems))
