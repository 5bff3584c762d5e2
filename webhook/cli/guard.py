"""`fairlead guard`: print ValidatingAdmissionPolicies that complement the webhook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.lazy import LazyGroup
from webhook.cli.options import policies_option
from webhook.cli.output import print_yaml
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

# The group's help lists these.
COMMANDS: Final[dict[str, str]] = {
    "authors": "Users who create a Run must have the right to create its pods.",
    "node-names": "Pods of runs may not set nodeName.",
    "stamp": "Report pods of runs that the webhook did not place.",
    "tolerations": "Pods may not get a capacity class's toleration after creation.",
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
    multiple=True,
    metavar="NAME",
    help="Guard only the pods of this namespace. Repeatable.",
)
exempt_option: Callable[[Any], Any] = click.option(
    "--exempt",
    multiple=True,
    metavar="USER",
    help="A user who is exempt, such as a queue's controller that assigns nodes: "
    "system:serviceaccount:NAMESPACE:NAME. Repeatable.",
)


@click.group("guard", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Print ValidatingAdmissionPolicies that enforce what the webhook cannot.

    manifests/ has those for the default sources and for the shipped capacity classes. These
    commands print them for your own sources and classes.
    """


@command.command("authors")
def authors() -> None:
    """Print the guard of Runs: a user who writes a Run's spec must have the right to create pods.

    For a Run with another backend than native, it asks for the right to create the engine's object.
    Without this guard, the right to create Runs implies the right to create any pod in the
    namespace. Like any user who may create pods, the author of a Run may use every service account
    of the namespace.

    \b
    Examples:
      fairlead guard authors | kubectl apply -f -

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import run_author_guard
    from webhook.run.backends.engines import created_objects

    print_yaml(run_author_guard(created_objects()))


@command.command("node-names")
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
      fairlead guard node-names | kubectl apply -f -
      fairlead guard node-names --source fairlead --source mlrun --source namespace

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import node_name_guard

    print_yaml(node_name_guard(entries(sources, only_namespaces), exempt))


@command.command("stamp")
@click.option(
    "--action",
    type=click.Choice(["warn", "deny"]),
    default="warn",
    show_default=True,
    help="warn: create the pod, warn its author, and write to the audit log. deny: reject the pod.",
)
@sources_option
@namespaces_option
def stamp(action: str, sources: tuple[str, ...], only_namespaces: tuple[str, ...]) -> None:
    """Print the guard for `failurePolicy: Ignore`: a pod of a run must carry Fairlead's stamp.

    The guard is a policy, and a binding for each entry of the webhook's configuration. It protects
    against a webhook that does not answer, not against authors, who can write the stamp themselves.

    \b
    Examples:
      fairlead guard stamp --action deny | kubectl apply -f -
      fairlead guard stamp --source fairlead --source mlrun --source namespace

    \b
    Exit codes:
      0  printed
      2  wrong usage
    """
    from webhook.guards import stamp_guard

    print_yaml(stamp_guard(entries(sources, only_namespaces), deny=action == "deny"))


@command.command("tolerations")
@policies_option(
    "Where your capacity classes are: a file or a folder. May be repeated: each is a separate "
    "set, so that several providers can be combined.",
    "paths",
    kind=click.Path(exists=True, path_type=Path),
    required=True,
)
@sources_option
@namespaces_option
@exempt_option
def tolerations(
    paths: tuple[Path, ...],
    sources: tuple[str, ...],
    only_namespaces: tuple[str, ...],
    exempt: tuple[str, ...],
) -> None:
    """Print the guard of capacity: pods of runs may not get a toleration of a class's taint after
    creation.

    In Kubernetes, users who may update a pod may add tolerations to it. The guard rejects
    tolerations with the key of a taint of your capacity classes, and tolerations without a key,
    which cover all taints. If a policy has allowedTolerations, it rejects every new toleration.

    \b
    Examples:
      fairlead guard tolerations --policies policies/ | kubectl apply -f -
      fairlead guard tolerations --policies mine/ \\
        --exempt system:serviceaccount:kueue-system:kueue-controller-manager

    \b
    Exit codes:
      0  printed
      1  a policy file is wrong, or no class has a taint
      2  wrong usage
    """
    from webhook.errors import UnreadableInput
    from webhook.guards import capacity_guard
    from webhook.interception import select_sources
    from webhook.placement.settings import AllowedSetting
    from webhook.questions.offline import read_policies

    sets = [read_policies([path]) for path in paths]
    keys: set[str] | None = {
        taint["key"]
        for policies in sets
        for capacity in policies.classes.values()
        for taint in capacity.taints
    }
    settings = (each for found in sets for policy in found.policies for each in policy.settings)
    if any(isinstance(each, AllowedSetting) for each in settings):
        keys = None
    elif not keys:
        where = ", ".join(map(str, paths))
        raise UnreadableInput([f"{where}: no capacity class with a taint, so nothing to guard"])
    marks = [mark for source in select_sources(sources) for mark in source.marks]
    print_yaml(capacity_guard(entries(sources, only_namespaces), marks, keys, exempt))


def entries(sources: Collection[str], only_namespaces: Collection[str]) -> list[dict[str, Any]]:
    """Return the entries of the webhook's configuration, whose selectors a guard takes."""
    return webhooks(sources, only_namespaces=sorted(only_namespaces))
