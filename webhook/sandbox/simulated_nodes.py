"""Create Node objects from pools in a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError

from webhook.dns_names import LABEL
from webhook.errors import SandboxError
from webhook.policy.document_parser import locate_error
from webhook.policy.findings import Finding, path_text
from webhook.policy.reader import MAX_BYTES
from webhook.policy.yaml_text import Tree, Unreadable, read_trees
from webhook.policy.yaml_tree import value
from webhook.strict import Strict, distinct

SHIPPED_NODES: Final = Path(__file__).parent / "nodes.yaml"


class Taint(Strict):
    """A taint, as in a Node's spec."""

    key: str = Field(description="The taint's key.")
    value: str = Field(default="", description="The taint's value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="What happens to pods that do not tolerate it."
    )


class Pool(Strict):
    """Equal nodes."""

    name: Annotated[str, Field(pattern=f"^{LABEL}$", max_length=50)] = Field(
        description="The beginning of the nodes' names."
    )
    count: Annotated[int, Field(ge=0, le=10_000)] = Field(description="The number of nodes.")
    zones: list[str] = Field(
        default_factory=list, description="The zones of the nodes, assigned in turn."
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of each node.")
    taints: list[Taint] = Field(default_factory=list, description="Taints of each node.")
    capacity: dict[str, str] = Field(
        default_factory=lambda: {"cpu": "8", "memory": "32Gi", "pods": "110"},
        description="Resources of each node, all of them allocatable.",
    )


def _one_of_a_name(pools: list[Pool]) -> list[Pool]:
    return distinct(pools, [pool.name for pool in pools], ("name",), "the name")


class _File(Strict):
    """The file of `sandbox up --nodes`."""

    pools: Annotated[list[Pool], AfterValidator(_one_of_a_name)] = Field(
        description="The nodes, pool by pool."
    )


def read_pools(path: Path) -> list[Pool]:
    """Return the pools of the file. Raises SandboxError with the place of everything that is
    wrong."""
    try:
        trees = [*read_trees(path.read_bytes(), MAX_BYTES)]
    except OSError as error:
        raise SandboxError(f"{path}: {error.strerror}") from error
    except Unreadable as error:
        raise SandboxError(str(Finding(str(path), *error.place, "", str(error)))) from error
    if len(trees) != 1:
        wanted = "want one document, with the field pools"
        raise SandboxError(f"{path}: {wanted}, not {len(trees)} documents")
    return _pools(str(path), trees[0])


def _pools(file: str, tree: Tree) -> list[Pool]:
    findings = [Finding(file, *fault.place, "", fault.message) for fault in tree.faults]
    if not findings:
        try:
            return _File.model_validate(value(tree.root)).pools
        except ValidationError as error:
            wrong = [locate_error(line, tree.root) for line in error.errors(include_url=False)]
        findings = [
            Finding(file, *problem.place, path_text(problem.path), problem.message)
            for problem in wrong
        ]
    raise SandboxError("\n".join(map(str, findings)))


def node_manifests(pools: list[Pool]) -> list[dict[str, Any]]:
    """Return every pool's Nodes in order, named <pool>-<number>, with capacity but not yet
    Ready."""
    return [_node(pool, number) for pool in pools for number in range(pool.count)]


def _node(pool: Pool, number: int) -> dict[str, Any]:
    name = f"{pool.name}-{number}"
    zone = (
        {"topology.kubernetes.io/zone": pool.zones[number % len(pool.zones)]} if pool.zones else {}
    )
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **zone,
        **pool.labels,
        "kubernetes.io/hostname": name,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [taint.model_dump(exclude_defaults=True) for taint in pool.taints]},
        "status": {
            "capacity": pool.capacity,
            "allocatable": pool.capacity,
            # Loopback, so that `kubectl logs` cannot reach out to somebody else's machine.
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "nodeInfo": {
                "architecture": labels["kubernetes.io/arch"],
                "operatingSystem": labels["kubernetes.io/os"],
                "kubeletVersion": "kwok",
                "containerRuntimeVersion": "kwok",
                **dict.fromkeys(_UNKNOWN, ""),
            },
        },
    }


_UNKNOWN: Final = (
    "bootID",
    "kernelVersion",
    "kubeProxyVersion",
    "machineID",
    "osImage",
    "systemUUID",
)
