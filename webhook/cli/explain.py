"""`fairlead explain`: why a pod gets what it gets, policy by policy and field by field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from webhook.cli import noting
from webhook.cli.cluster_options import cluster_options
from webhook.cli.output_option import output_option
from webhook.cli.pod_options import pod_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.cli.decisions import Replicas
    from webhook.cli.fail_on import FailOn
    from webhook.cli.live.focus import Focus
    from webhook.cli.live.question import Answers
    from webhook.cli.selection import Selection
    from webhook.cli.where import Where


@click.command("explain")
@click.argument("words", nargs=-1, metavar="[TYPE NAME | TYPE/NAME]...")
@pod_options
@click.option(
    "--policy",
    default="",
    metavar="NAME",
    help="Only this policy: does it match, and if not, which condition fails; what became of its "
    "settings.",
)
@click.option(
    "--field",
    default="",
    metavar="PATH",
    help="Only this field, such as tolerations, nodeSelector.pool or "
    "'tolerations[nvidia.com/gpu]': who set it, who lost it, and which policies could set it and "
    "do not match.",
)
@cluster_options
@output_option("Text for people, or JSON with everything: all nodes by name, the whole patch.")
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    filenames: tuple[Path, ...],
    policies: tuple[Where, ...],
    namespace: str,
    namespaces_file: Path | None,
    nodes: Where | None,
    fail_on: tuple[FailOn, ...],
    policy: str,
    field: str,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Explain why pods get what they get: objects of a cluster, or of files without one.

    For each pod: who it is; each policy, and if it does not match the very condition that fails;
    each field, by whom it is set, kept, lost, dropped, removed, skipped or rejected, and why; and
    with --nodes, what shuts the pod out of each node.

    Of a live pod also what its stamp says was done when it was created, and where it is not as
    today's policies would have it. These decide on it as its author wrote it: by the template of
    what made it, else by the file that it was applied from, else by what no policy has to its
    credit. Of a Job, Deployment, Run or whatever makes pods: what new pods would get, and which of
    its live pods are otherwise.

    \b
    Examples:
      fairlead explain pod train-0 -n research
      fairlead explain job/train --nodes cluster
      fairlead explain pod train-0 --field tolerations
      fairlead explain pod train-0 --field nodeSelector.pool
      fairlead explain deployment web --policy spot-workers
      fairlead explain pod train-0 --policies policies/
      fairlead explain -f job.yaml --policies policies/ --nodes nodes.yaml
      kubectl get tfjob mnist -o yaml | fairlead explain -f - --policies cluster

    \b
    Exit codes:
      0  with -f: every pod would be admitted; live: every pod is as it would be today; with
         --fail-on, nothing of that kind was found
      1  with -f: a pod would be rejected, a template is wrong, or a file or an object cannot be
         read;
         live: a pod is otherwise, would be rejected, or has no stamp;
         with --fail-on, something of that kind was found
      2  wrong usage, or no such policy; live: no such object, or the cluster did not answer
    """
    from webhook.cli.fail_on import check_usage
    from webhook.cli.live.fields import field_path, unknown_field
    from webhook.cli.live.focus import Focus
    from webhook.cli.selection import Selection

    path = field_path(field)
    if path and (what := unknown_field(path)):
        raise click.UsageError(f"--field {field}: {what}")
    selection = Selection(
        words, filenames, policies, namespace, namespaces_file, nodes, kubeconfig, context, fail_on
    )
    check_usage(selection)
    focus = Focus(policy, path)
    same = _live(selection, focus, output) if selection.live else _files(selection, focus, output)
    ctx.exit(0 if same else 1)


def _live(selection: Selection, focus: Focus, output: str) -> bool:
    """Print what is found of live objects; whether all are as they would be."""
    from webhook.cli.fail_on import fails
    from webhook.cli.live import document, text
    from webhook.cli.live.answers_or_exit import answers_or_exit

    answers = answers_or_exit(selection, focus)
    decided = _today(answers)
    if output == "json":
        click.echo(json.dumps(document.document(answers, focus), indent=2, ensure_ascii=False))
    else:
        for line in text.lines(answers, focus):
            click.echo(line)
    return answers.same and not fails(
        selection.fail_on, decided, answers.policies, answers.nodes, answers.notes
    )


def _today(answers: Answers) -> Sequence[Replicas]:
    """What would become of the objects' pods if they were created now."""
    from webhook.cli.live.judged import LivePod

    return [
        replicas
        for found in answers.found
        for replicas in ([found.today] if isinstance(found, LivePod) else found.replicas)
    ]


def _files(selection: Selection, focus: Focus, output: str) -> bool:
    """Print what is found of files; whether every pod would be admitted."""
    from webhook.cli import explain_json, explain_text
    from webhook.cli.decisions import readable, unjudged
    from webhook.cli.fail_on import fails
    from webhook.cli.failing import fail
    from webhook.cli.live.focus import NoSuchPolicy, check_policy
    from webhook.cli.live.text import focused
    from webhook.cli.selection import read_files

    offline, nodes = read_files(selection)
    try:
        check_policy(focus, offline.policies, ())
    except NoSuchPolicy as error:
        fail(error, 2)
    decided, problems = readable(offline)
    unknown = [*offline.not_known(), *unjudged(decided, nodes)]
    noting.tell(unknown)
    if output == "json":
        found = explain_json.document(decided, offline.policies, nodes, focus)
        found |= {"problems": problems, "unread": [*offline.unread]}
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        texts = (
            focused(each, offline.policies, focus)
            if focus
            else explain_text.lines(each, offline.policies, nodes)
            for each in decided
        )
        click.echo("\n\n".join("\n".join(each) for each in texts))
    failed = fails(selection.fail_on, decided, offline.policies, nodes, unknown)
    return not problems and not failed
