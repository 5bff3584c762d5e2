"""`fairlead install`: install or upgrade Fairlead in a cluster."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Final

import click

from webhook.cli.exit_codes import DONE, FAILED, TIME_OVER
from webhook.cli.install_options import manifest_options, refuse_reports_of_files
from webhook.cli.options import cluster_options, progress_option, timeout_option
from webhook.cli.output import (
    confirm,
    output_option,
    print_error,
    print_json,
    print_notes,
    print_result,
    print_text,
    print_yaml,
    say,
)
from webhook.cli.short_help import Command
from webhook.errors import ClusterError, InstallationError
from webhook.questions.completion import complete_namespaces
from webhook.settings import NamespaceName
from webhook.shortening import harmless
from webhook.text.documents import as_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta

    from webhook.installation.apply import NotInTime, Result
    from webhook.installation.choices import Choices
    from webhook.installation.object_kinds import Key
    from webhook.installation.preparation import Forecast, Preparation
    from webhook.installation.stored_options import LastTime
    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.progress import Progress


_FORETOLD: Final = {
    "created": "would create",
    "changed": "would change",
    "deleted": "would delete",
    "unknown": "not known:",
}


@click.command("install", cls=Command)
@manifest_options
@click.option(
    "--reset",
    is_flag=True,
    help="Install with the options of this command alone, and forget those of last time.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be created, changed and deleted, and change nothing; -o yaml and json "
    "print the objects that would be applied.",
)
@click.option(
    "-n",
    "--namespace",
    type=NamespaceName(),
    metavar="NAME",
    shell_complete=complete_namespaces,
    help="Where a pod of a run is tried, by dry run. Default: default, or the first of the only "
    "namespaces whose pods are sent.",
)
@click.option(
    "-y", "--yes", is_flag=True, help="Do not ask before something is taken away or changed."
)
@timeout_option()
@cluster_options
@progress_option()
@output_option(
    "What to print. Progress is on stderr.",
    report="Installation",
)
def command(
    choices: Choices,
    reset: bool,
    dry_run: bool,
    namespace: str | None,
    yes: bool,
    timeout: timedelta,
    kubeconfig: Kubeconfig,
    progress: Progress,
    output: str,
) -> None:
    """Install or upgrade Fairlead in the cluster, and wait until it answers.

    The objects are those of `kubectl apply -k manifests/OVERLAY`, applied by server-side apply in
    an order that rejects no pod and no policy: the webhook configurations come last, when the
    webhook answers. The command ends when a dry run places a pod of a run. Run it again to
    upgrade or repair: it changes what differs, removes only objects of Fairlead, and enables a
    disabled webhook.

    The options are stored in the cluster, and hold the next time, too: `fairlead install` alone
    installs as last time. Options that you give are added; of overlays, images and addresses they
    take the place. --policies and files are read once. What the command takes away or changes, also
    of what others have written into its objects, is listed first, and needs your answer, or --yes.
    Namespaces that are left out on purpose stay so. The command refuses objects that Helm, Argo CD
    or Flux manage.

    Policies are objects of the cluster. Policies that were edited, or that this installation did
    not create, stay unchanged. If the webhook read its policies from the ConfigMap before, they
    first become objects, unchanged; if that fails, nothing is changed.

    \b
    Examples:
      fairlead install --image registry.example.com/fairlead:0.1.0
      fairlead install --overlay fail-open-guarded --source mlrun --policies mine/
      fairlead install --policies-from-files --policies mine/
      fairlead install --source acme.yaml
      fairlead install --overlay default --overlay monitoring --nodes
      fairlead install --dry-run
      fairlead install --image registry.example.com/fairlead:0.2.0 --yes

    \b
    Exit codes:
      0  installed, and the webhook answers; with --dry-run: it can be installed
      1  not installed, or not confirmed: stderr shows the problem and the fix
      2  wrong usage, or the cluster did not answer or refused
      3  the time is over, and it does not answer yet
      130  ended by Ctrl-C: stderr lists what was changed before
    """
    from webhook.installation.choices import adapted, as_installed
    from webhook.installation.stored_options import as_last_time, notes_of

    before, trouble = _last_time(kubeconfig, choices, reset=reset)
    print_notes(notes_of(before.options, choices.image))
    choices = as_last_time(choices, before.options)
    if not (choices.from_files and choices.policies):
        # Otherwise the files take the place of what the webhook reads now.
        choices = replace(choices, stored=before.sources)
    refuse_reports_of_files(choices)
    try:
        objects = adapted(choices)
    except ValueError as error:
        if before.options and before.options.sources:
            trouble = f"; of last time: {', '.join(before.options.sources)} (--reset forgets them)"
        raise click.BadParameter(f"{error}{trouble}", param_hint="--source") from None
    last_time = (
        None if reset else before._replace(objects=as_installed(before.options, before.sources))
    )
    own_policies = choices.policies is not None
    if dry_run:
        look = partial(
            _foretell,
            objects=objects,
            own_policies=own_policies,
            before=last_time,
            namespace=namespace or "",
            whole=output == "text",
        )
        ready, forecast = kubeconfig.ask(look)
        if output == "json":
            print_json(as_list([*ready.objects.values()]))
        elif output == "yaml":
            print_yaml(ready.objects.values())
        else:
            print_text(output, starmap(_foretold, forecast.items()))
        sys.exit(FAILED if ready.obstacles else DONE)
    reports = "policy-reports" in choices.components
    made = kubeconfig.ask(
        lambda client: _run(
            client,
            objects,
            timeout.total_seconds(),
            own_policies=own_policies,
            reports=reports,
            before=last_time,
            namespace=namespace or "",
            yes=yes,
            progress=progress,
        )
    )
    if made is None:
        sys.exit(TIME_OVER)
    done, untried = made
    document = [{"object": str(key), "result": result} for key, result in done.items()]
    print_result(output, json=lambda: {"objects": document}, text=lambda: _lines(done, untried))


def _last_time(kubeconfig: Kubeconfig, choices: Choices, *, reset: bool) -> tuple[LastTime, str]:
    """Return what the cluster knows of last time, and why its sources are not known, if so."""
    from webhook.installation.stored_options import LastTime, read_last_time

    try:
        return kubeconfig.ask(partial(read_last_time, reset=reset)), ""
    except ClusterError as error:
        if choices.names_unknown_source:
            return LastTime(), f"; the sources of the cluster are not known: {error}"
        raise


async def _foretell(
    client: Client,
    objects: Mapping[Key, dict[str, object]],
    *,
    own_policies: bool,
    before: LastTime | None,
    namespace: str,
    whole: bool,
) -> tuple[Preparation, Mapping[Key, Forecast]]:
    """Print what stands in the way, and what the installation would take away or change.

    whole: also ask what it would do to each object
    """
    from webhook.installation.preparation import foretell, prepare

    ready = await prepare(
        client, objects, own_policies=own_policies, before=before, namespace=namespace
    )
    print_notes([*ready.notes, *await ready.losses()])
    for obstacle in ready.obstacles:
        say("error", obstacle)
    return ready, await foretell(client, ready) if whole else {}


def _foretold(key: Key, result: Forecast) -> str:
    return f"{_FORETOLD.get(result, result)} {key}"


def agree(losses: Sequence[str], *, yes: bool) -> None:
    """Print what is taken away or changed, and ask. Raises InstallationError without an answer."""
    click.echo("This installation takes away or changes:", err=True)
    for loss in losses:
        click.echo(f"  {harmless(loss)}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise InstallationError(
            "not confirmed, and nothing has been changed: there is no terminal to ask; --yes "
            "agrees to what is listed"
        )
    confirm("Go on?")


async def _run(
    client: Client,
    objects: dict[Key, dict[str, object]],
    timeout: float,  # noqa: ASYNC109  (of several waits together)
    *,
    own_policies: bool,
    reports: bool,
    before: LastTime | None,
    namespace: str,
    yes: bool,
    progress: Progress,
) -> tuple[Mapping[Key, Result], str] | None:
    """Install; return what was done, and why no pod was tried, if so. None: not in time."""
    from webhook.installation.apply import NotInTime, Patience
    from webhook.installation.install import Installer

    may = partial(agree, yes=yes)
    installer = Installer(client, Patience(timeout, progress), progress, may, namespace)
    try:
        done = await installer.install(objects, own_policies=own_policies, before=before)
        if reports:
            print_notes(await reports_notes(client))
        return done, installer.untried
    except BaseException as error:
        described = list(installer.describe_partial())
        if not isinstance(error, Exception):
            end = "" if described else ": nothing has been changed"
            click.echo(f"stopped by Ctrl-C{end}", err=True)
        for line in described:
            click.echo(harmless(line), err=True)
        if not isinstance(error, NotInTime):
            raise
        await explain_timeout(client, error)
        return None


async def reports_notes(client: Client) -> list[str]:
    """Return a note if the cluster does not serve policy reports yet. Raises ClusterError."""
    from webhook.api_paths import ApiPath
    from webhook.controller.policies.report_documents import NO_DEFINITION, VERSION

    return [] if await client.find(ApiPath.of_version(VERSION)) else [NO_DEFINITION]


def _lines(done: Mapping[Key, Result], untried: str) -> Iterator[str]:
    for key, result in done.items():
        if result != "unchanged":
            yield f"{result} {key}"
    if unchanged := list(done.values()).count("unchanged"):
        yield f"{unchanged} objects were as they should be"
    if untried:
        yield f"whether Fairlead answers is not known: no pod could be tried ({untried})"
    else:
        yield "Fairlead answers: a pod of a run comes back placed"


async def explain_timeout(client: Client, error: NotInTime) -> None:
    """Say on stderr what was waited for, and what is wrong, each with its cure."""
    import webhook
    from webhook.cli import doctor
    from webhook.installation.doctor.cluster_reader import ClusterReader
    from webhook.installation.doctor.diagnose import diagnose

    print_error(error)
    click.echo(err=True)
    state = await ClusterReader(client).read_cluster(datetime.now(UTC), webhook.__version__)
    for line in doctor.lines(diagnose(state)):
        click.echo(line, err=True)
