"""Policies and test documents written in a line, for tests of the tests."""

from __future__ import annotations

HEAD = "apiVersion: fairlead.dev/v1alpha1\nkind: PolicyTest\n"
CLASS = """\
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {pool: spot}, taints: [{key: spot, value: "true", effect: NoSchedule}]}]}
---
"""
NODES = """\
nodes:
- name: spot-1
  labels: {pool: spot}
  taints: [{key: spot, value: "true", effect: NoSchedule}]
- {name: steady-1, labels: {pool: steady}}
"""
WORKER = "{labels: {fairlead.dev/run: r, fairlead.dev/role: worker}}"


def policy(name: str, spec: str) -> str:
    """A PlacementPolicy; `spec` is in flow style, without its braces."""
    head = "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\n"
    return f"{head}metadata: {{name: {name}}}\nspec: {{{spec}}}\n---\n"


WORKERS_ON_SPOT = CLASS + policy(
    "workers-on-spot",
    "match: {roles: [worker]}, overrides: {capacity: [{class: spot, mode: Constrain}]}",
)


def case(expect: str, pod: str = WORKER, more: str = "") -> str:
    body = f"- name: it\n  pod: {pod}\n  expect: {expect}\n"
    if more:
        body += f"  {more}\n"
    return f"{HEAD}{NODES}tests:\n{body}"
