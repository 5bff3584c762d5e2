"""`fairlead install`: put Fairlead into a cluster, or bring it up to date."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli.cluster_options import client_of, cluster_options
from webhook.cli.number import Number
from webhook.cli.output_option import output_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.installation.choices import Choices
    from webhook.installation.install import Done
    from webhook.installation.kinds import Key


@click.command("install")
@click.option(
    "--overlay",
    "overlay_names",
    multiple=True,
    metavar="NAME",
    help="Of the manifests: default, cert-manager, fail-open-guarded, fail-open-guarded-deny, "
    "development, monitoring. Several are joined. Default: default.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME",
    help="Also intercept the pods of this system; `fairlead sources` names them. May be repeated.",
)
@click.option(
    "--image", default="", metavar="IMAGE", help="Of both programs: REGISTRY/fairlead:TAG."
)
@click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR",
    help="Policies, instead of the classes that ship: each becomes an object of the cluster.",
)
@click.option(
    "--policies-from-files",
    "from_files",
    is_flag=True,
    help="Have the webhook take its policies from files, the ConfigMap fairlead-policies, and not "
    "from objects: those of --policies, which replace whatever it holds.",
)
@click.option(
    "--nodes",
    is_flag=True,
    help="Have the webhook watch the nodes, and warn of each new pod that none of them admits; "
    "with the right to do so, which is taken away again without this option.",
)
@click.option(
    "--webhook-url",
    default="",
    metavar="URL",
    help="Where the webhook is, if it runs outside of the cluster: https://HOST:PORT/mutate.",
)
@click.option(
    "--webhook-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The PEM of the authority that vouches for it there.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be applied, and touch nothing.")
@click.option(
    "--timeout",
    type=Number(1, 86400),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="For all that is waited for.",
)
@cluster_options
@output_option(
    "What to print; yaml for --dry-run alone, where text is YAML too. Progress is on stderr.",
    ("text", "json", "yaml"),
)
def command(
    overlay_names: tuple[str, ...],
    sources: tuple[str, ...],
    image: str,
    policies: Path | None,
    from_files: bool,
    nodes: bool,
    webhook_url: str,
    webhook_ca: Path | None,
    dry_run: bool,
    timeout: float,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Put Fairlead into the cluster, or bring it up to date, and wait until it answers.

    The objects are those of `kubectl apply -k manifests/OVERLAY`, applied by server-side apply in
    an order that refuses no pod, and no policy: the webhook configurations come when there is
    somebody to answer. It is done when a pod of a run, by dry run, comes back placed. Again, it
    upgrades: what differs is changed, nothing that is not Fairlead's is taken away, and a webhook
    that was disabled is enabled.

    Policies are objects of the cluster. One that somebody has changed stays as it is, and so do
    all that are not of this installation. Where the webhook took its policies from the ConfigMap
    until now, they become objects first, every one as it is; if that cannot be, nothing is changed.

    \b
    Examples:
      fairlead install --image registry.example.com/fairlead:0.1.0
      fairlead install --overlay fail-open-guarded --source mlrun --policies mine/
      fairlead install --policies-from-files --policies mine/
      fairlead install --overlay default --overlay monitoring --nodes
      fairlead install --dry-run | less

    \b
    Exit codes:
      0  installed, and it answers
      1  not: what is missing, and what to do, is on stderr
      2  wrong usage
    """
    if bool(webhook_url) != bool(webhook_ca):
        raise click.UsageError("--webhook-url and --webhook-ca go together")
    if webhook_url and not webhook_url.startswith("https://"):
        raise click.BadParameter("want https://HOST:PORT/PATH", param_hint="--webhook-url")
    if output == "yaml" and not dry_run:
        raise click.UsageError("-o yaml goes with --dry-run; for programs there is -o json")
    from webhook.cli.installing import files_of
    from webhook.installation.choices import Choices

    choices = Choices(
        sources,
        image,
        files_of(policies) if policies else None,
        from_files,
        nodes,
        webhook_url,
        webhook_ca.read_bytes() if webhook_ca else b"",
    )
    objects, stale = _objects(overlay_names, choices)
    if dry_run:
        _print_objects(list(objects.values()), output)
        return
    done = asyncio.run(_run(objects, stale, choices, timeout, kubeconfig, context))
    if done is None:
        sys.exit(1)
    _print_done(done, output)


def _objects(
    overlay_names: Sequence[str], choices: Choices
) -> tuple[dict[Key, dict[str, object]], frozenset[Key]]:
    """What to apply, and what other overlays have beside it."""
    from webhook.installation.choices import adapted
    from webhook.installation.overlays import DEFAULT, every_key, objects_of, overlays
    from webhook.installation.policies import of_key

    known = overlays()
    if unknown := [name for name in overlay_names if name not in known]:
        raise click.BadParameter(
            f"{unknown[0]!r} is not one of {', '.join(known)}", param_hint="--overlay"
        )
    found = [each for name in overlay_names or (DEFAULT,) for each in objects_of(name)]
    try:
        objects = adapted(found, choices)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--source") from None
    stale = (key for key in every_key() if key not in objects and not of_key(key))
    return objects, frozenset(stale)


async def _run(
    objects: dict[Key, dict[str, object]],
    stale: frozenset[Key],
    choices: Choices,
    timeout: float,  # noqa: ASYNC109  (of several waits together)
    kubeconfig: Path | None,
    context: str,
) -> Sequence[Done] | None:
    from webhook.cli.installing import explain
    from webhook.installation.install import Installer
    from webhook.installation.patience import NotInTime, Patience
    from webhook.sandbox.progress import Lines

    async with client_of(kubeconfig, context) as client:
        installer = Installer(client, Patience(timeout), Lines(sys.stderr))
        try:
            return await installer.install(
                objects, stale=sorted(stale), own_policies=choices.policies is not None
            )
        except NotInTime as error:
            await explain(client, error)
            return None


def _print_objects(objects: Sequence[dict[str, object]], output: str) -> None:
    from webhook.cli.yaml_out import yaml_documents

    if output == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": objects}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(yaml_documents(objects), nl=False)


def _print_done(done: Sequence[Done], output: str) -> None:
    if output == "json":
        document = [{"object": str(each.key), "result": each.result} for each in done]
        click.echo(json.dumps({"objects": document}, indent=2))
        return
    for each in done:
        if each.result != "unchanged":
            click.echo(f"{each.result} {each.key}")
    unchanged = sum(each.result == "unchanged" for each in done)
    if unchanged:
        click.echo(f"{unchanged} objects were as they should be")
    click.echo("Fairlead answers: a pod of a run comes back placed")
