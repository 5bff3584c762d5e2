"""`fairlead ui`: show policies, pods and nodes in a browser."""

from __future__ import annotations

import secrets
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.api_paths import NODES, VERSION
from webhook.cli.options import Scope, cluster_options, policies_option, scope_options
from webhook.cli.short_help import Command
from webhook.questions.where import CLUSTER, Where, WhereType, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.kube.client import Client
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.ui.playground import Texts

_PODS: Final = "# Put here what makes pods: a Run, a Job, a Pod or another workload.\n"
_FILES: Final = click.Path(exists=True, path_type=Path)
_FALLBACK: Final = (
    "A browser that does not find this name, such as Safari, needs 127.0.0.1 in its place. Then it"
    " sends the cookie of these pages to each server on 127.0.0.1 that you open, also to those of"
    " other users of this machine."
)


@click.command("ui", cls=Command)
@click.argument("where", required=False, type=click.Choice(["cluster"]), metavar="[cluster]")
@policies_option("A folder of policies, or a file (repeatable), or `cluster`.")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    type=_FILES,
    metavar="FILE",
    help="Objects that make pods: a file or a folder (repeatable).",
)
@click.option(
    "--nodes",
    type=WhereType(folders=False),
    metavar="FILE",
    help="What `kubectl get nodes -o yaml` prints, or `cluster`.",
)
@scope_options("With cluster, the Runs", cluster_wide=True)
@cluster_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0, the default: any.")
@click.option("--pieces", is_flag=True, help="Add /pieces, a page with each piece of the pages.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@click.option(
    "--no-token",
    is_flag=True,
    help="All who reach the port may use the pages: for a pod to which `kubectl port-forward` "
    "leads.",
)
def command(
    where: str | None,
    policies: Sequence[Where],
    filenames: Sequence[Path],
    nodes: Where | None,
    scope: Scope,
    kubeconfig: Kubeconfig,
    port: int,
    pieces: bool,
    no_browser: bool,
    no_token: bool,
) -> None:
    """Open pages in a browser, on loopback: a playground for policies, and the Runs of a cluster.

    In the playground, policies are on the left, manifests and nodes in the middle, and on the right
    is what happens to the pods, and why, while you type: the answers of `fairlead check` and
    `fairlead explain`. The files are read once, and never written. Without options it has the
    example of `fairlead demo`. "Copy link" puts all texts into an address; they are stored nowhere
    else.

    With `cluster` there are pages of its Runs, as they change, of each with its replicas, and of
    its nodes and policies, with the rights of your kubeconfig. Nothing in the cluster is changed.
    The playground then has the cluster's policies and nodes.

    Whoever has the printed address can use the pages until the command ends; with --no-token each
    user of this machine can. `fairlead install --ui` runs them in a pod.

    \b
    Examples:
      fairlead ui
      fairlead ui --policies policies/ -f job.yaml --nodes nodes.yaml
      fairlead ui cluster
      fairlead ui cluster -n research
      fairlead ui --port 8765 --no-browser

    \b
    Exit codes:
      0  ended by Ctrl-C
      1  a file could not be read, or the port is taken
      2  wrong usage, or the cluster did not answer
    """
    from webhook.ui.app import Pages
    from webhook.ui.guard import PARAMETER, Guard
    from webhook.ui.opening import opened_pages
    from webhook.ui.playground import Texts
    from webhook.ui.serving import listen, own_name, serve

    if (scope.namespace or scope.everywhere) and not where:
        raise click.UsageError("-n and -A are for `fairlead ui cluster`")
    reads = where and not (policies or filenames or nodes)
    if where:
        kubeconfig.ask(lambda client: client.get(VERSION))
    texts, given_nodes = (
        (Texts("", _PODS, ""), b"") if reads else _texts(policies, filenames, nodes, kubeconfig)
    )
    token, name = ("", "") if no_token else (secrets.token_urlsafe(24), own_name())
    with ExitStack() as ending:
        sockets = [ending.enter_context(listener) for listener in listen(port)]
        at_port = f":{sockets[0].getsockname()[1]}/"
        address = f"http://{name or '127.0.0.1'}{at_port}"
        click.echo(f"{address}?{PARAMETER}={token}" if token else address)
        click.echo("Ctrl-C ends it. Open this address if your browser shows no page.", err=True)
        if name:
            click.echo(_FALLBACK, err=True)
        pages = Pages(
            texts,
            kubeconfig if where else None,
            scope.namespace,
            _texts_of if reads else None,
            given_nodes,
            pieces,
        )
        guard = Guard(pages.app(), token=token, name=name)
        if not no_browser:
            guard.entered = ending.enter_context(opened_pages(address, token))
        serve(pages, guard, sockets)
    sys.exit()


def _texts(
    policies: Sequence[Where],
    filenames: Sequence[Path],
    nodes: Where | None,
    kubeconfig: Kubeconfig,
) -> tuple[Texts, bytes]:
    """Return the texts of the files, and of the cluster, with nodes beside them; the example's
    without any.

    Raises UnreadableInput, ClusterError, and WrongUsage for policies of both.
    """
    import orjson

    from webhook.cli.demo.show import DATA
    from webhook.questions.objects import read_objects
    from webhook.ui.playground import MOST_BYTES, Texts

    if not (policies or filenames or nodes):
        example = (("policies",), ("namespace.yaml", "pods.yaml"), ("nodes.yaml",))
        return Texts(*(_joined([DATA / name for name in names]) for names in example)), b""
    if CLUSTER in policies and not paths_of(policies):
        text = _yaml("policies", kubeconfig.ask(_policies))
    else:
        text = _joined(paths_of(policies))
    if nodes is CLUSTER:
        listed_nodes = kubeconfig.ask(_nodes)
    else:
        of_nodes = _joined([nodes] if nodes else [])
        if len(of_nodes) <= MOST_BYTES // 3:
            return Texts(text, _joined(filenames), of_nodes), b""
        listed_nodes = [_node(given.value) for given in read_objects([nodes])] if nodes else []
    return Texts(text, _joined(filenames), _remark(listed_nodes)), orjson.dumps(listed_nodes)


def _joined(paths: Sequence[Path]) -> str:
    """Return the content of all files as one text, each below its name."""
    from webhook.questions.objects import read_files

    parts = []
    for path in paths:
        for name, content in read_files([path]).items():
            text = content.decode("utf-8-sig", "replace").strip()
            short = name.removeprefix(f"{path.parent}/")
            parts.append(text if name == str(path) else f"# {short}\n{text}")
    return "\n---\n".join(parts) + "\n" * bool(parts)


async def _texts_of(client: Client) -> tuple[Texts, bytes]:
    """Return what the user may read of a cluster; a comment says what is not there, and why."""
    import orjson

    from webhook.errors import ClusterError
    from webhook.shortening import one_line
    from webhook.ui.playground import Texts

    texts, given_nodes = {}, b""
    for what, read in (("policies", _policies), ("nodes", _nodes)):
        try:
            found_objects = await read(client)
        except ClusterError as error:
            texts[what] = f"# The cluster's {what} are not here: {one_line(str(error))}\n"
            continue
        if what == "nodes":
            texts[what], given_nodes = _remark(found_objects), orjson.dumps(found_objects)
        else:
            texts[what] = _yaml(what, found_objects)
    return Texts(texts["policies"], _PODS, texts["nodes"]), given_nodes


def _remark(nodes: Sequence[dict[str, Any]]) -> str:
    count = f"{len(nodes):,} nodes count" if len(nodes) != 1 else "one node counts"
    return f"# The {count}. They stay on the server: write Nodes here to ask about others.\n"


async def _policies(client: Client) -> list[dict[str, Any]]:
    import orjson

    from webhook.cluster_objects.policy_objects import read_whole_objects

    return [orjson.loads(text) for text in (await read_whole_objects(client)).values()]


async def _nodes(client: Client) -> list[dict[str, Any]]:
    return (await client.list(NODES, _node)).items


def _node(raw: dict[str, Any]) -> dict[str, Any]:
    """Return what decides which pods a node admits."""
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    kept = {key: spec[key] for key in ("taints", "unschedulable") if spec.get(key)}
    allocatable = (raw.get("status") or {}).get("allocatable")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}},
        **({"spec": kept} if kept else {}),
        **({"status": {"allocatable": allocatable}} if allocatable else {}),
    }


def _yaml(what: str, documents: Iterable[dict[str, Any]]) -> str:
    from webhook.text.yaml_out import yaml_text
    from webhook.ui.playground import MOST_BYTES

    text = "---\n".join(map(yaml_text, documents))
    if len(text) > MOST_BYTES // 3:
        return f"# The cluster has more {what} than fit here: give some with --{what} FILE.\n"
    return text
