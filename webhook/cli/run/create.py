"""`fairlead run create`: make a Run from options or a file, and follow it."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook import names
from webhook.cli.dry_run import server_of
from webhook.cli.exit_codes import FAILED
from webhook.cli.output import print_notes
from webhook.cli.run.creating import conclude, following_options, print_created, submit_run
from webhook.cli.short_help import Command
from webhook.errors import UnreadableInput
from webhook.questions.completion import members_of
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.run.model import Run

_PROGRAM: Final = "run.create.program"
_SPOT: Final = {"allow": "Allow", "require": "Constrain", "avoid": "Prevent"}


class Pair(click.ParamType[tuple[str, str]]):
    """Two texts with a sign between them."""

    def __init__(self, first: str, sign: str, second: str) -> None:
        self.name = f"{first}{sign}{second}"
        self._sign = sign

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split at the first sign; click reports an error."""
        if isinstance(value, tuple):
            return value
        first, sign, second = str(value).partition(self._sign)
        if not (first and sign):
            self.fail(f"{value!r}: want {self.name}", param, ctx)
        return first, second


class WithProgram(Command):
    """A command with `-- PROGRAM...` at the end, which is in the context's `meta`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the program off; what is before it is parsed as usual."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_PROGRAM] = args[at + 1 :]
        cure = "the program and its options stand at the end, after --"
        try:
            rest = super().parse_args(ctx, args[:at])
        except click.NoSuchOption as error:
            if at < len(args):
                raise
            message = f"{error.message.removesuffix('.')}: {cure}."
            raise click.NoSuchOption(
                error.option_name, message, error.possibilities, error.ctx
            ) from None
        if rest and not ctx.resilient_parsing:
            ctx.fail(f"unexpected {shlex.join(rest)}: {cure}")
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return those of the options and arguments, and of the program."""
        return [*super().collect_usage_pieces(ctx), "[-- PROGRAM...]"]


@click.command("create", cls=WithProgram, context_settings={"allow_extra_args": True})
@click.argument("name", required=False, default="", type=ObjectName())
@click.option("--image", default="", metavar="IMAGE", help="The image of all replicas.")
@click.option(
    "--framework",
    default="",
    metavar="NAME",
    shell_complete=members_of("webhook.frameworks.table", "FRAMEWORKS"),
    help="What connects the replicas, such as pytorch. Default: nothing.",
)
@click.option(
    "--workers", type=click.IntRange(1), metavar="N", help="Replicas of role worker. Default: one."
)
@click.option("--gpus", type=click.IntRange(0), default=0, metavar="N", help="GPUs of each worker.")
@click.option(
    "--gpu-resource",
    default="nvidia.com/gpu",
    show_default=True,
    metavar="NAME",
    help="What they are.",
)
@click.option("--cpu", default="", metavar="N", help="CPUs that each worker requests.")
@click.option("--memory", default="", metavar="SIZE", help="Memory that it requests, such as 16Gi.")
@click.option(
    "--env",
    multiple=True,
    type=Pair("NAME", "=", "VALUE"),
    help="A variable of all replicas. Repeatable.",
)
@click.option(
    "--volume",
    "volumes",
    multiple=True,
    type=Pair("CLAIM", ":", "PATH"),
    help="Mount a PersistentVolumeClaim. Repeatable.",
)
@click.option(
    "--spot",
    type=click.Choice(list(_SPOT)),
    help="Nodes of the class spot: allow them, require them, or avoid them. Default: as policies "
    "say.",
)
@click.option(
    "--capacity",
    multiple=True,
    type=Pair("CLASS", "=", "MODE"),
    help="Nodes of a capacity class: Allow, Prefer, Constrain or Prevent. Repeatable.",
)
@click.option(
    "--queue", type=ObjectName(), default="", metavar="NAME", help="The queue of Kueue to wait in."
)
@click.option(
    "--restart-scope",
    type=click.Choice(["Replica", "Role", "Run"]),
    help="Which replicas restart together with a failed one. Default: only itself.",
)
@click.option(
    "--gang",
    metavar="TIME",
    default="",
    help="Start all replicas at once: each gets a node within this time, such as 20m, or none "
    "keeps one. From 1m to 24h. Default: each starts by itself.",
)
@click.option(
    "--code",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Mount the files of this folder at /code, where the program then runs: at most 900 KiB, "
    "without hidden files and what .gitignore and .fairleadignore name.",
)
@click.option(
    "-f",
    "--from",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Take the Run from this file, YAML or JSON, instead of options; - is standard input.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    type=Pair("PATH", "=", "VALUE"),
    help="Change a field of the Run: spec.replicas.worker.count=8. The value is YAML. Repeatable.",
)
@click.option(
    "--preview",
    is_flag=True,
    help="First show what the cluster's policies do to its pods, and ask the API server about "
    "them, if you may create pods. The Run is not created if a pod would be rejected.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the Run, checked without a cluster, and create nothing."
)
@following_options
def command(
    name: str,
    file: Path | None,
    changes: Sequence[tuple[str, str]],
    code: Path | None,
    preview: bool,
    wait: bool,
    logs: bool,
    dry_run: bool,
    namespace: str,
    kubeconfig: Kubeconfig,
    output: str | None,
    **options: Any,
) -> None:
    """Create the Run NAME, which runs PROGRAM in each replica.

    The Run is checked before it is sent: names, images, counts and quantities, with the rules of
    the API server, the controller and the kubelet. Of mpi PROGRAM is the launcher's, of ray and
    dask the driver's: the other roles run programs of the framework. To change a Run that the
    options make, write it with --dry-run, and give the file with --from.

    \b
    Examples:
      fairlead run create mnist --image example.invalid/mnist:1 -- python train.py
      fairlead run create mnist --image example.invalid/mnist:1 --framework pytorch \\
        --workers 3 --gpus 1 --spot allow --logs -- python train.py --epochs 5
      fairlead run create mnist --image python:3.11 --code . --dry-run -o yaml -- python train.py
      fairlead run create -f run.yaml --set spec.replicas.worker.count=8 --preview

    \b
    Exit codes:
      0  created; with --wait or --logs: it succeeded
      1  not created; with --wait or --logs: it failed, or it was deleted
      2  wrong usage, or the cluster did not answer or refused
      130  ended by Ctrl-C; with --wait or --logs the Run goes on
    """
    from webhook.run.new_run import checked
    from webhook.run_client.code_files import read_code
    from webhook.run_client.submit import config_map, with_code

    arguments: Sequence[str] = click.get_current_context().meta[_PROGRAM]
    given = {
        key: option_value
        for key, option_value in options.items()
        if option_value and key != "gpu_resource"
    }
    if file and (given or arguments):
        what = ", ".join(f"--{key.replace('_', '-')}" for key in given) or "PROGRAM"
        raise click.UsageError(f"with --from, give --set instead of {what}")
    if not file and not (name and options["image"]):
        needed = {"NAME": name, "--image": options["image"]}
        lacking = " and ".join(word for word, value in needed.items() if not value)
        raise click.UsageError(f"give {lacking}, or a Run with --from FILE")
    if preview and dry_run:
        raise click.UsageError("--preview asks the cluster, and --dry-run does not: give one")
    _given_once(options)
    if file and str(file) != "-" and not changes:
        from webhook.run_client.run_files import read_plans

        # The same checks, with the line of each problem.
        read_plans([file], namespace or "default", "")
    raw = _read(file, name) if file else _made(name, arguments, options)
    for path, value in changes:
        _set(raw, path, value)
    # All that follows reads fields of it.
    print_notes(checked(raw, namespace or "default").warnings)
    raw = _placed(raw, namespace)
    files: Mapping[str, bytes] = {}
    if code:
        code_files = read_code(code)
        files = code_files.files
        click.echo(f"code: {code_files}", err=True)
        raw = with_code(raw, files)
    if dry_run:
        checked(raw, "default")
        # Else the Run would mount a ConfigMap that nobody makes.
        print_created(raw, output or "yaml", [config_map(raw, files)] if files else [])
        return
    within = raw["metadata"].get("namespace") or kubeconfig.namespace()
    run = checked(raw, within).run

    async def create(client: Client) -> int:
        stored = await submit_run(client, raw, within, files)
        return await conclude(client, stored, output, wait=wait, logs=logs)

    place = str(file) if file else "the options"
    if preview and not _previewed(kubeconfig, run, place, err=output is not None):
        sys.exit(FAILED)
    sys.exit(kubeconfig.ask(create))


def _placed(raw: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the Run in the namespace that is given. Raises UsageError if it names another."""
    target = raw["metadata"].get("namespace") or namespace
    if namespace and target != namespace:
        raise click.UsageError(
            f"--namespace is {namespace}, and metadata.namespace is {target}: give one of them"
        )
    return {**raw, "metadata": {**raw["metadata"], "namespace": target}} if target else raw


def _previewed(kubeconfig: Kubeconfig, run: Run, place: str, *, err: bool) -> bool:
    """Show what the cluster would do to the Run's pods, and say whether it would take them all."""
    from webhook.cli.run.creating import read_surroundings, show_preview

    world, notes = kubeconfig.ask(partial(read_surroundings, run=run))
    print_notes(notes)
    return show_preview(run, place, replace(world, server=server_of(kubeconfig)), err=err)


def _given_once(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that is repeated with one name."""
    spot = [("spot", "")] if options["spot"] else []
    for option, pairs in (
        ("--env", options["env"]),
        ("--volume", options["volumes"]),
        ("--capacity", [*spot, *options["capacity"]]),
    ):
        keys = [first for first, _ in pairs]
        if twice := next((key for key in keys if keys.count(key) > 1), ""):
            more = " (--spot is one of them)" if spot and twice == "spot" else ""
            raise click.UsageError(f"{option} is given twice for {twice}{more}: give it once")


def _made(name: str, arguments: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    from webhook.run.new_run import NewRun, manifest

    spot = {"spot": _SPOT[options["spot"]]} if options["spot"] else {}
    requests = {"cpu": options["cpu"], "memory": options["memory"]}
    return manifest(
        NewRun(
            name=name,
            image=options["image"],
            command=arguments,
            framework=options["framework"],
            workers=options["workers"] or 0,
            gpus=options["gpus"],
            gpu_resource=options["gpu_resource"],
            resources={key: quantity for key, quantity in requests.items() if quantity},
            env=dict(options["env"]),
            volumes=dict(options["volumes"]),
            capacity={**spot, **dict(options["capacity"])},
            queue=options["queue"],
            restart_scope=options["restart_scope"] or "",
            gang=options["gang"],
        )
    )


def _read(file: Path, name: str) -> dict[str, Any]:
    """Return the one Run of a file, with this name if there is one. Raises UnreadableInput."""
    from webhook.questions.objects import objects_in, read_files

    problems: list[str] = []
    ((where, content),) = read_files([file], plain=True).items()
    runs = [
        document
        for document in objects_in(where, content, problems)
        if document.kind == names.RUN_KIND
    ]
    if problems:
        raise UnreadableInput(problems)
    if len(runs) != 1:
        raise UnreadableInput([f"{where}: it has {len(runs)} Runs; want one"])
    raw: dict[str, Any] = runs[0].value
    if name:
        raw["metadata"] = {**(raw.get("metadata") or {}), "name": name}
    return raw


def _set(raw: dict[str, Any], path: str, text: str) -> None:
    """Set a field; mappings that are not there are made. Raises UnreadableInput."""
    import yaml

    from webhook.policy.findings import parse_path

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    *steps, last = parse_path(path) or ("",)
    at: Any = raw
    try:
        for step in steps:
            if isinstance(at, dict) and at.get(step) is None:
                at[step] = {}
            at = at[step] if isinstance(at, dict) else at[int(step)]
        if isinstance(at, dict):
            at[last] = value
        else:
            at[int(last)] = value
    except (AttributeError, IndexError, TypeError, ValueError):
        raise UnreadableInput([f"--set {path}: the Run has no such place"]) from None
