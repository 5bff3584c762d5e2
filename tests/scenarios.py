"""The scenarios: one pod, policies and what else is there; every face is asked about each.

A scenario is one file of golden/scenarios. Faces that need no cluster are asked in evaluation/,
the API server, the scheduler and the faces of live pods in cluster/.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from webhook.names import RUN

Json = dict[str, Any]
SCENARIOS = sorted((Path(__file__).parent / "golden" / "scenarios").glob("*.yaml"))
each_scenario = pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)


class Scenario:
    """The files of one scenario in a folder, and what is expected.

    admitted, before: the nodes that admit the pod with and without the policies; None if the
                      scenario has no nodes
    on_demand:        autoscaled classes that could make a node, if none admits the pod
    not_judged:       what of the pod also decides about nodes
    evicting:         the nodes that evict the pod, and after how many seconds
    refused:          texts that a refusal names; empty if the API server takes the pod
    refused_before:   whether the API server refuses the pod without policies, too
    rejected:         texts of the webhook's rejection
    namespace:        the pod's, if its pods are not sent to the webhook; else empty
    applies:          the policies that apply; None if the scenario does not say
    objects:          what else is in the cluster

    `prefix` stands before the names of nodes and of RuntimeClasses, for a cluster that has others.
    """

    def __init__(self, path: Path, folder: Path, prefix: str = "") -> None:
        text = path.read_text()
        given = yaml.safe_load(text)
        nodes = [node["metadata"]["name"] for node in given.get("nodes", ())]
        classes = [e["metadata"]["name"] for e in given.get("objects", ()) if "handler" in e]
        for name in (*nodes, *classes) if prefix else ():
            text = re.sub(rf"(?<![\w./-]){name}(?![\w./-])", f"{prefix}-{name}", text)
        given = yaml.safe_load(text)
        self.folder = folder
        self.pod: Json = {"metadata": {"name": "p", "labels": {RUN: "r"}}, **given["pod"]}
        self.namespace: str = given.get("namespace", "")
        if self.namespace:
            self.pod["metadata"]["namespace"] = self.namespace
        self.nodes: list[Json] | None = given.get("nodes")
        self.admitted: list[str] | None = given.get("admitted")
        self.before: list[str] | None = given.get("before")
        self.on_demand: list[str] = given.get("onDemand", [])
        self.evicting: dict[str, int] = given.get("evicting", {})
        self.not_judged: list[str] = given.get("notJudged", [])
        self.rejected: list[str] = given.get("rejected", [])
        self.refused: list[str] = given.get("refused", self.rejected)
        self.refused_before: bool = given.get("refusedBefore", False)
        self.applies: list[str] | None = given.get("applies")
        self.objects: list[Json] = given.get("objects", [])
        self.policies: str = given["policies"]
        self.write("policies.yaml", self.policies)
        self.write("pod.yaml", {"apiVersion": "v1", "kind": "Pod", **self.pod})
        listed = [{"kind": "Node", **node} for node in self.nodes or ()]
        self.write("nodes.yaml", {"kind": "List", "items": listed})
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        self.write("cluster.yaml", {"kind": "List", "items": [space, *self.objects]})

    @property
    def is_owned(self) -> bool:
        """Whether one of the objects owns the pod, which no other object then makes."""
        return "ownerReferences" in self.pod["metadata"]

    @property
    def is_stranded(self) -> bool:
        """Whether no node admits the pod, now or on demand."""
        return self.admitted == [] and not self.on_demand

    @property
    def fails(self) -> bool:
        """Whether the answer is bad news: refused, or no node."""
        return bool(self.refused) or self.is_stranded

    @property
    def said_by_the_api_server(self) -> list[str]:
        """The texts of its refusal, which names no object."""
        objects = [*yaml.safe_load_all(self.policies), *self.objects]
        named = {each["metadata"]["name"] for each in objects}
        return [text for text in self.refused if text not in named]

    def write(self, name: str, content: Any) -> None:
        """Write a file of the scenario's folder: a text, or an object as YAML."""
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (self.folder / name).write_text(text)
