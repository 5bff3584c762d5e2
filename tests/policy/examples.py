"""Documents that use every field, and what can be changed in them: to compare readers."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

EVERYTHING = """\
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec:
  autoscaled: true
  interruptible: true
  lostAfter: 5m
  relativePrice: 0.3
  unhealthy:
  - {condition: GpuHealthy, status: "False", lasts: 2m}
  nodes:
  - labels: {cloud.google.com/gke-spot: "true"}
    taints: [{key: cloud.google.com/gke-spot, value: "true", effect: NoSchedule}]
  - matchExpressions:
    - {key: pool, operator: In, values: [a, b]}
    - {key: stable, operator: DoesNotExist}
    taints: [{key: preemptible, effect: NoExecute}]
---
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: on-demand, labels: {a: b}, annotations: {a/b: any text}, generation: 3}
spec: {complementOf: spot}
---
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: reserved}
spec: {nodes: [{labels: {reserved: "true"}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: burst}
spec: {nodes: [{labels: {burst: "true"}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: everything}
spec:
  description: Every field once.
  enforcement: Enforce
  rollout: {namespaces: [research, "ml-*"]}
  priority: -5
  match:
    namespaces: [research, "ml-*"]
    namespaceSelector: {matchLabels: {tier: batch}}
    podSelector: {matchExpressions: [{key: stage, operator: NotIn, values: [debug]}]}
    kinds: [experiment, job]
    frameworks: [tensorflow]
    roles: [worker]
    replicaIndexes: [0, 1]
    coordinator: false
    resources: [nvidia.com/gpu]
    volumes: [persistentVolumeClaim]
    serviceAccounts: [default, "train*"]
  exclude:
  - {namespaces: [research], podSelector: {matchLabels: {debug: ""}}}
  defaults:
    patchStrategy: IsNull
    nodeSelector: {pool: experiments}
    tolerations:
    - {operator: Exists, effect: NoExecute, tolerationSeconds: 30}
    - {key: spot, value: "true"}
    priorityClassName: low
    schedulerName: volcano
    runtimeClassName: gvisor
    terminationGracePeriodSeconds: 20
  overrides:
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: cpus, operator: Gt, values: ["8"]}]
            matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 1
          preference: {matchExpressions: [{key: gpu, operator: Exists}]}
      podAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm: {topologyKey: zone, namespaceSelector: {}, namespaces: [ml]}
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {app: ps}}
          matchLabelKeys: [run]
          mismatchLabelKeys: [tenant]
    topologySpreadConstraints:
    - maxSkew: 1
      minDomains: 2
      topologyKey: zone
      whenUnsatisfiable: DoNotSchedule
      nodeAffinityPolicy: Honor
      nodeTaintsPolicy: Ignore
      labelSelector: {}
      matchLabelKeys: [run]
    capacity:
    - {class: spot, mode: Prefer, weight: 80}
    - {class: on-demand, mode: Allow}
    split:
    - {class: reserved, mode: Prefer, weight: 5, count: 2}
    - {class: burst, percent: 30}
    - class: burst
      percent: 10
      fallback:
        afterDisruptions: 3
        within: 6h
        afterPending: 20m
        then: Prevent
        returnAfter: 1h30m
    - {class: reserved}
  requirements:
    labels: {team: vision}
    annotations: {Example.com/note: "any text: at all"}
    securityContext:
      runAsUser: 1000
      runAsGroup: 1000
      runAsNonRoot: true
      fsGroup: 2000
      fsGroupChangePolicy: OnRootMismatch
      supplementalGroups: [3000]
      supplementalGroupsPolicy: Strict
      seccompProfile: {type: Localhost, localhostProfile: p.json}
      appArmorProfile: {type: RuntimeDefault}
      seLinuxOptions: {user: u, role: r, type: t, level: s0}
      seLinuxChangePolicy: Recursive
      sysctls: [{name: net.core.somaxconn, value: "1024"}]
      windowsOptions: {runAsUserName: u, hostProcess: false}
status: {conditions: []}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementException
metadata: {name: debug-anna}
spec:
  policies: [everything]
  match:
    namespaces: [research]
    podSelector: {matchLabels: {debug: anna}}
  until: "2026-12-01T18:00:00+01:00"
  reason: Anna looks for the memory leak on a spot node.
"""

# The value that takes its place away.
GONE = object()


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value below a node of mappings and lists."""
    items: dict[Any, Any] = {}
    if isinstance(node, dict | list):
        items = node if isinstance(node, dict) else dict(enumerate(node))
    for key, value in items.items():
        yield (*path, key)
        yield from places(value, (*path, key))


def with_changes(
    wholes: st.SearchStrategy[Any], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Objects with one or two values in the spec, or the name, changed or taken away."""

    @st.composite
    def objects(draw: st.DrawFn) -> Any:
        whole = draw(wholes)
        for _ in range(draw(st.integers(1, 2))):
            paths = [path for path in places(whole) if path[0] == "spec" or path[1:] == ("name",)]
            if paths:
                whole = changed(whole, draw(st.sampled_from(paths)), draw(values))
        return whole

    return objects()


def changed(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a node with another value at the path, or with none if it is GONE."""
    whole = copy.deepcopy(node)
    parent = whole
    for step in path[:-1]:
        parent = parent[step]
    if value is GONE:
        del parent[path[-1]]
    else:
        parent[path[-1]] = copy.deepcopy(value)
    return whole
