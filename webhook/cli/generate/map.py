"""`fairlead generate map`: print policies in forms that need no webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from webhook.cli.generate.guard import entries, namespaces_option, sources_option
from webhook.cli.options import cluster_options, policies_option
from webhook.cli.output import print_yaml
from webhook.cli.short_help import Command
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.questions.where import Where


@click.command("map", cls=Command)
@policies_option(
    "A folder of policies, or a file (repeatable: all of them are one set), or `cluster`.",
    "where",
    required=True,
)
@click.option(
    "--default-priority-class",
    type=ObjectName(),
    default="",
    metavar="NAME",
    help="The cluster's PriorityClass with globalDefault, if there is one: pods that have "
    "it count as unset.",
)
@click.option(
    "--default-toleration-seconds",
    type=click.IntRange(0, 2**31 - 1),
    default=300,
    show_default=True,
    metavar="SECONDS",
    help="The API server's --default-not-ready-toleration-seconds: tolerations with this "
    "value count as unset.",
)
@sources_option
@namespaces_option
@cluster_options
def command(
    where: tuple[Where, ...],
    default_priority_class: str,
    default_toleration_seconds: int,
    sources: tuple[str, ...],
    only_namespaces: tuple[str, ...],
    kubeconfig: Kubeconfig,
) -> None:
    """Print policies as a MutatingAdmissionPolicy and a ValidatingAdmissionPolicy, with bindings.

    For clusters without the webhook; Kubernetes 1.36 and later. The API server itself then places
    and rejects pods as the webhook would. There are no warnings, no metrics and no trace of
    decisions, and policies under Audit are left out.

    If a setting cannot be expressed exactly in this form, nothing is printed: the error names the
    policy, the field, the reason and the fix. docs/guides/without-a-webhook.md has the whole list.

    \b
    Examples:
      fairlead generate map --policies mine/ > exported.yaml
      fairlead generate map --policies cluster > exported.yaml
      fairlead generate map --policies mine/ --source fairlead --source mlrun | kubectl apply -f -
      fairlead generate map --policies mine/ --only-namespace trial | kubectl apply -f -

    \b
    Exit codes:
      0  printed
      1  something cannot be exported, or `fairlead check` finds an error in the policies
      2  wrong usage, or the cluster did not answer
    """
    from webhook.exported.documents import documents
    from webhook.exported.positioned_settings import placed_of
    from webhook.judgement.set_judgement import load_sound
    from webhook.questions.offline import policy_texts

    files = policy_texts(where, kubeconfig)
    load_sound(files)
    placed, audited = placed_of(files, default_priority_class, default_toleration_seconds)
    manifests = documents(placed, entries(sources, only_namespaces))
    if audited:
        click.echo(f"left out, because they are under Audit: {', '.join(audited)}", err=True)
    print_yaml(manifests)
