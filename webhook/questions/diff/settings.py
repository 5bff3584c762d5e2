"""What is compared, and how: the settings of a comparison of two policy sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.questions.class_history import HISTORY
from webhook.questions.completion import NAMESPACE
from webhook.questions.dry_run import DRY_RUN_HELP
from webhook.questions.plugins_option import PLUGINS, PLUGINS_OPTION
from webhook.questions.where import CLUSTER, Where, WhereType
from webhook.settings import setting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from click.shell_completion import CompletionItem

    from webhook.kube.kubeconfig import Kubeconfig


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a policy set, as given on the command line."""

    text: str

    @property
    def is_cluster(self) -> bool:
        """True for the word `cluster`; a folder of that name is ./cluster."""
        return self.text == CLUSTER.value

    @property
    def is_known(self) -> bool:
        """True if it can be a path, a git revision's, or the cluster."""
        return self.is_cluster or ":" in self.text or Path(self.text).exists()


class SourceType(click.ParamType[Source]):
    """Converts to a Source, whether it is there or not."""

    name = "source"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Source:
        """Return the source."""
        del param, ctx
        return value if isinstance(value, Source) else Source(str(value))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a path, or the word `cluster`."""
        return WhereType(folders=True).shell_complete(ctx, param, incomplete)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The arguments and options. Without `pods`, the cluster's pods are compared."""

    old: Source
    new: Source
    kubeconfig: Kubeconfig
    pods: tuple[Path, ...] = setting(
        "--pods",
        multiple=True,
        type=click.Path(exists=True, path_type=Path, allow_dash=True),
        metavar="PATH",
        help="Objects that create pods, YAML or JSON: a file, a folder with its subfolders, or "
        "- for standard input. Repeatable. Default: the cluster's workloads, and its live pods "
        "that no workload makes.",
    )
    namespace: str = setting(
        "-n",
        "--namespace",
        **NAMESPACE,
        default="",
        help="With --pods, the namespace of objects without one (default: default). Without "
        "--pods, pods and workloads of this namespace. Default: all namespaces.",
    )
    everywhere: bool = setting(
        "-A",
        "--all-namespaces",
        is_flag=True,
        help="Without --pods, pods and workloads of all namespaces.",
    )
    namespaces_file: Path | None = setting(
        "--namespaces",
        type=click.Path(exists=True, path_type=Path, dir_okay=False),
        metavar="FILE",
        help="What `kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml` prints; it may "
        "have DeviceClasses and Kueue's ResourceFlavors, too. Default: the cluster's, if the "
        "command reads a cluster.",
    )
    nodes: Where | None = setting(
        "--nodes",
        type=WhereType(folders=False),
        metavar="FILE",
        help="What `kubectl get nodes -o yaml` (or json) prints, or `cluster`. Checks whether any "
        "of them admits the pods. Default: the cluster's nodes, if the command reads a cluster.",
    )
    plugins: tuple[str, ...] | None = setting(PLUGINS, **PLUGINS_OPTION)
    fail_on: str = setting(
        "--fail-on",
        type=click.Choice(["changed", "unplaceable", "rejected", "unknown", "never"]),
        default="changed",
        show_default=True,
        help="What gives exit code 1. changed: any difference; unplaceable: pods newly rejected or "
        "newly without a node or room; rejected: pods newly rejected; unknown: nothing. For each "
        "of these, an unknown fact that could change the answer gives exit code 2. never: the code "
        "is 0.",
    )
    history: Sequence[tuple[str, int, timedelta | None]] = setting("--history", **HISTORY)
    dry_run: str | None = setting("--dry-run", type=click.Choice(["server"]), help=DRY_RUN_HELP)

    @property
    def asks_cluster(self) -> bool:
        """Whether part of the input comes from a cluster."""
        named = self.old.is_cluster or self.new.is_cluster or self.nodes is CLUSTER
        return named or not self.pods
