"""From pools in a small YAML file to the Node objects that the sandbox creates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from webhook.errors import SandboxError

SHIPPED_NODES: Final = Path(__file__).parent / "nodes.yaml"


class Taint(BaseModel):
    """A taint, as in a Node's spec."""

    model_config = ConfigDict(extra="forbid", strict=True)

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Pool(BaseModel):
    """Nodes that are alike; `zones` are taken in turn, and capacity is allocatable whole."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=50)]
    count: Annotated[int, Field(ge=0, le=10_000)]
    zones: list[str] = []
    labels: dict[str, str] = {}
    taints: list[Taint] = []
    capacity: dict[str, str] = {"cpu": "8", "memory": "32Gi", "pods": "110"}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    pools: list[Pool]


def read_pools(path: Path) -> list[Pool]:
    """The pools of the file. Raises SandboxError naming the file and every wrong field."""
    try:
        pools = _File.model_validate(yaml.safe_load(path.read_text())).pools
    except OSError as error:
        raise SandboxError(f"{path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise SandboxError(f"{path}: not YAML: {error}") from error
    except ValidationError as error:
        lines = [
            f"{path}: {'.'.join(map(str, finding['loc'])) or 'file'}: {finding['msg']}"
            for finding in error.errors()
        ]
        raise SandboxError("\n".join(lines)) from error
    names = [pool.name for pool in pools]
    for name in names:
        if names.count(name) > 1:
            raise SandboxError(f"{path}: two pools are named {name}; give one another name")
    return pools


def node_manifests(pools: list[Pool]) -> list[dict[str, Any]]:
    """Every pool's Nodes in order, named <pool>-<number>, with capacity but not yet Ready."""
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
