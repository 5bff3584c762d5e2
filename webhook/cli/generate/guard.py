"""`fairlead generate guard`: print ValidatingAdmissionPolicies that complement the webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.lazy import LazyGroup
from webhook.cli.output import print_yaml
from webhook.cli.short_help import Command
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.questions.completion import complete_namespaces
from webhook.settings import NamespaceName
from webhook.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

# The group's help lists these.
COMMANDS: Final[dict[str, str]] = {
    "authors": "Users who create a Run must have the right to create what it becomes.",
    "namespace-labels": "Only admins may change labels from which policies take values.",
    "node-names": "Pods of runs may not set nodeName.",
    "stamp": "Report pods of runs that the webhook did not place.",
    "tolerations": "Pods of runs may not get another toleration after creation.",
}
sources_option: Callable[[Any], Any] = click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Choice([source.name for source in SOURCES]),
    default=DEFAULT_SOURCES,
    show_default=True,
    help="Guard the pods of this system; give the same sources as at installation. Repeatable.",
)
namespaces_option: Callable[[Any], Any] = click.option(
    "--only-namespace",
    "only_namespaces",
    type=NamespaceName(),
    multiple=True,
    metavar="NAME",
    shell_complete=complete_namespaces,
    help="Guard only the pods of this namespace. Repeatable.",
)
exempt_option: Callable[[Any], Any] = click.option(
    "--exempt",
    multiple=True,
    metavar="USER",
    help="A user who is exempt, such as a queue's controller that assigns nodes: "
    "system:serviceaccount:NAMESPACE:NAME. Repeatable.",
)


class LabelKey(click.ParamType[str]):
    """The key of a label."""

    name = "key"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the key; click reports an error."""
        from webhook.placement.schema.syntax import qualified_name_fault

        if fault := qualified_name_fault(value):
            self.fail(f"{value!r} is not a label key: {fault}", param, ctx)
        return str(value)


@click.group("guard", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Print ValidatingAdmissionPolicies that enforce what the webhook cannot.

    manifests/ has those for the default sources. These commands print them for your own.
    """


@command.command("authors", cls=Command)
def authors() -> None:
    """Print the guard of Runs: a user who writes a Run's spec must have the right to create what
    the Run becomes.

    These are pods and a Service; a Deployment and a Service for a kind that serves; also a
    ConfigMap and a Secret for a framework whose replicas share files; and for a Run with another
    backend than native the engine's object. Without this guard, the right to create Runs implies
    the right to create these in the namespace. Like any user who may create pods, the author of
    a Run may use every service account of the namespace.

    \b
    Examples:
      fairlead generate guard authors | kubectl apply -f -

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.controller.owned_objects import created_for_runs
    from webhook.guards import run_author_guard

    print_yaml(run_author_guard(created_for_runs()))


@command.command("namespace-labels", cls=Command)
@click.option(
    "--label",
    "labels",
    multiple=True,
    required=True,
    type=LabelKey(),
    metavar="KEY",
    help="A label of namespaces, as namespaceLabel in a policy names it. Repeatable.",
)
def namespace_labels(labels: tuple[str, ...]) -> None:
    """Print the guard of namespaces' labels: only who may update policies may change them.

    A policy with nodeSelectorFrom or tolerationsFrom takes values from labels of namespaces. So
    whoever may label a namespace chooses where its pods run. Some tenancy tools let the owner of a
    namespace label it. `fairlead policy values` shows the labels that policies read.

    
    Examples:
      fairlead generate guard namespace-labels --label team-pool --label team | kubectl apply -f -

    
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import namespace_label_guard

    print_yaml(namespace_label_guard(labels))


@command.command("node-names", cls=Command)
@sources_option
@namespaces_option
@exempt_option
def node_names(
    sources: tuple[str, ...], only_namespaces: tuple[str, ...], exempt: tuple[str, ...]
) -> None:
    """Print the guard of nodeName: a pod of a run may not name its node.

    In Kubernetes, the author of a pod may set nodeName, and so bypass the scheduler and taints.
    The webhook rejects such a pod only if a requirement about nodes is not met or cannot be
    checked; defaults and overrides do not apply. The guard always rejects it.

    \b
    Examples:
      fairlead generate guard node-names | kubectl apply -f -
      fairlead generate guard node-names --source fairlead --source mlrun --source namespace

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import node_name_guard

    print_yaml(node_name_guard(entries(sources, only_namespaces), exempt))


@command.command("stamp", cls=Command)
@click.option(
    "--action",
    type=click.Choice(["warn", "deny"]),
    default="warn",
    show_default=True,
    help="`warn`: create the pod, warn its author, and write to the audit log. `deny`: reject the "
    "pod.",
)
@sources_option
@namespaces_option
def stamp(action: str, sources: tuple[str, ...], only_namespaces: tuple[str, ...]) -> None:
    """Print the guard for `failurePolicy: Ignore`: a pod of a run must carry Fairlead's stamp.

    The guard is a policy, and a binding for each entry of the webhook's configuration. It protects
    against a webhook that does not answer, not against authors, who can write the stamp themselves.

    \b
    Examples:
      fairlead generate guard stamp --action deny | kubectl apply -f -
      fairlead generate guard stamp --source fairlead --source mlrun --source namespace

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import stamp_guard

    print_yaml(stamp_guard(entries(sources, only_namespaces), deny=action == "deny"))


@command.command("tolerations", cls=Command)
@sources_option
@namespaces_option
@exempt_option
def tolerations(
    sources: tuple[str, ...], only_namespaces: tuple[str, ...], exempt: tuple[str, ...]
) -> None:
    """Print the guard of tolerations: pods of runs may not get another one after creation.

    In Kubernetes, users who may update a pod may add tolerations to it, and so undo what a policy
    enforced when the pod was created. The guard rejects every toleration that the pod's own do not
    cover. A controller that gives pods their nodes later, such as Kueue, must be exempt.

    \b
    Examples:
      fairlead generate guard tolerations | kubectl apply -f -
      fairlead generate guard tolerations --source fairlead --source mlrun --source namespace \\
        --exempt system:serviceaccount:kueue-system:kueue-controller-manager

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import capacity_guard
    from webhook.interception import select_sources

    marks = [mark for source in select_sources(sources) for mark in source.marks]
    print_yaml(capacity_guard(entries(sources, only_namespaces), marks, exempt))


def entries(sources: Collection[str], only_namespaces: Collection[str]) -> list[dict[str, Any]]:
    """Return the entries of the webhook's configuration, whose selectors a guard takes."""
    return webhooks(sources, only_namespaces=sorted(only_namespaces))
