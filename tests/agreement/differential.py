"""One pod on the real API server, with the webhook and without, held against the engine offline."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jsonpatch

from tests.agreement.dry_runs import BothAnswers, groups_of
from tests.cluster.spaces import ADMINISTRATOR
from tests.control_planes import StartControlPlane
from tests.laws.strategies import RUNTIME_CLASS
from webhook import names
from webhook.decision.advice import signed, warnings
from webhook.decision.arrival import DEFAULT_TOLERATION_SECONDS, Arrival, Cluster
from webhook.decision.decision import Decision
from webhook.decision.engine import decide
from webhook.policy.policy_set import PolicySet
from webhook.sandbox.control_plane import ControlPlane, Settings

Json = dict[str, Any]
WITHOUT = "without"
# The namespaces that the webhook serves, with their labels: in the second every pod is a run's.
WITH: dict[str, dict[str, str]] = {
    "ml-team": {"tier": "batch"},
    "whole": {names.PLACE: names.PLACE_ALL, names.KIND: "core"},
}
DEFAULT_CLASS = "cluster-default"
PRIORITIES = {
    DEFAULT_CLASS: (7, "PreemptLowerPriority"),
    "low": (-10, "PreemptLowerPriority"),
    "high": (1000, "Never"),
}
OVERHEAD = {"cpu": "100m", "memory": "1Mi"}
# The entries of the webhook's configuration, as the API server names them.
ENTRIES = [f'admission webhook "{entry}.{names.GROUP}"' for entry in ("pods-0", "namespaces")]
NODE = "n1"
NODE_USER = f"{names.NODE_USERS}{NODE}"
_TITLE = re.compile(r"^fairlead: pod \S+: ")
# What the API server makes up again for each pod.
VOLATILE = ("uid", "creationTimestamp", "managedFields", "namespace")


def apart(start: StartControlPlane, namespaces: Mapping[str, Mapping[str, str]]) -> ControlPlane:
    """An API server with namespaces, by their labels, and PriorityClasses of one test's own."""
    plane = start(Settings(components=("etcd", "kube-apiserver")))
    for name, labels in namespaces.items():
        plane.create_namespace(name, labels)
    for name, (value, preemption) in PRIORITIES.items():
        plane.api.create(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": preemption,
                "globalDefault": name == DEFAULT_CLASS,
            },
        )
    plane.api.create(
        "/apis/node.k8s.io/v1/runtimeclasses",
        {"metadata": {"name": RUNTIME_CLASS}, "handler": "h", "overhead": {"podFixed": OVERHEAD}},
    )
    return plane


@dataclass(frozen=True)
class PolicyFile:
    """Policies as one file, and the set that they make."""

    text: str
    policies: PolicySet


@dataclass(frozen=True)
class Case(BothAnswers):
    """The answers, and the policies then."""

    file: PolicyFile

    def __str__(self) -> str:
        return f"{super().__str__()}\npolicies: {self.file.text}"

    def decision(self) -> Decision | None:
        """What the engine says offline of the pod as it is without us; None if it is not asked.

        The webhook is registered for pods with our own mark, and for namespaces as a whole.
        """
        metadata, labels = self.without.body["metadata"], WITH[self.namespace]
        if names.RUN not in metadata.get("labels", {}) and names.PLACE not in labels:
            return None
        of_namespace = {**labels, "kubernetes.io/metadata.name": self.namespace}
        user = user_of(self.sent)
        arrival = Arrival(
            self.without.body, self.namespace, of_namespace, user, groups=groups_of(user)
        )
        return decide(arrival, self.file.policies, Cluster(DEFAULT_CLASS))

    def examine(self) -> str:
        """Hold the two answers against each other; tell what became of the pod."""
        if not self.without.accepted:
            if not self.with_us.accepted:
                return "refused either way"
            # allowedTolerations has taken away what the API server refuses.
            assert "takes away" in "".join(self.with_us.warnings), self.without.message
            assert "spec.tolerations" in self.without.message
            return "without its odd tolerations"
        assert self.with_us.status < 500, self.with_us.message
        decision = self.decision()
        said: set[str] = set()
        expected = self.without.body
        if decision is not None:
            said = {signed(warning) for warning in warnings(self.without.body, decision)}
            if not decision.allowed:
                assert not self.with_us.accepted
                who, _, reason = self.with_us.message.partition(" denied the request: ")
                assert (who, reason) in {(one, decision.reason) for one in ENTRIES}
                return decision.result
            expected = self._patched(decision)
        assert self.with_us.accepted, self.with_us.message
        assert comparable(self.with_us.body) == comparable(expected)
        assert ours(self.with_us.warnings) == said
        return "not asked" if decision is None else decision.result

    def _patched(self, decision: Decision) -> Json:
        pod: Json = copy.deepcopy(self.without.body)
        pod = jsonpatch.apply_patch(pod, copy.deepcopy(list(decision.patch)))
        spec = pod["spec"]
        # The API server's admission plugins run again.
        tolerations = spec.setdefault("tolerations", [])
        tolerations += [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in DEFAULT_TOLERATION_SECONDS.items()
            if not any(
                each.get("key", "") in ("", key) and each.get("effect", "") in ("", "NoExecute")
                for each in tolerations
            )
        ]
        if "priority" not in spec:
            spec["priority"], spec["preemptionPolicy"] = PRIORITIES[spec["priorityClassName"]]
        if spec.get("runtimeClassName"):
            spec["overhead"] = OVERHEAD
        return pod


def user_of(pod: Json) -> str:
    """Who creates the pod: the mirror pods of one node are its own, any others are forged."""
    mirror = names.MIRROR_POD in (pod["metadata"].get("annotations") or {})
    return NODE_USER if mirror and pod["spec"].get("nodeName") == NODE else ADMINISTRATOR


def comparable(pod: Json) -> Json:
    """The pod without what is made up again each time, and without what means nothing."""
    metadata = {key: value for key, value in pod["metadata"].items() if key not in VOLATILE}
    if "generateName" in metadata:
        del metadata["name"]
    status = {**pod.get("status", {})}
    # A pod with scheduling gates has one from the first, with the second in which it came.
    status["conditions"] = [
        {key: value for key, value in each.items() if key != "lastTransitionTime"}
        for each in status.get("conditions") or ()
    ]
    # The API server drops an empty map: of a selector whose last key an override took away.
    spec = {k: v for k, v in pod["spec"].items() if (k, v) != ("nodeSelector", {})}
    return {**pod, "metadata": metadata, "spec": spec, "status": status}


def ours(texts: Iterable[str]) -> set[str]:
    """Warnings but for the API server's own: it may have one of what a policy set.

    (A spread constraint without a labelSelector, say.) Without the pod's name, which may have been
    made up after it was asked about.
    """
    return {_TITLE.sub("fairlead: ", text) for text in texts if text.startswith("fairlead: ")}
