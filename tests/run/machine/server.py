"""The model's API server: names are unique, versions guard writes, every change is an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tests.run.machine.ledger import Ledger
from tests.run.machine.things import GRACE, Json, Node, Pod, RunThing, Thing, WorkloadThing
from webhook.placement.fallback import Fallback, parse_history

Object: TypeAlias = Pod | RunThing | Thing | Node | WorkloadThing
SPOT = "spot"
KINDS = ("runs", "pods", "services", "configmaps", "deployments", "nodes", "workloads")


class Refused(Exception):
    """The server's answer is no. `reason` is the Status object's."""

    def __init__(self, reason: str, message: str = "") -> None:
        self.reason = reason
        super().__init__(message or reason)


@dataclass(frozen=True)
class Event:
    """One change of one object; `thing` is None once it is gone."""

    version: int
    name: str
    thing: Object | None


class Server:
    """Everything that is stored, and all that ever changed, by kind."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.now = 0.0
        self.version = 0
        self.stored: dict[str, dict[str, Any]] = {kind: {} for kind in (*KINDS, "secrets")}
        self.log: dict[str, list[Event]] = {kind: [] for kind in self.stored}
        self.quota_used_up = False
        # Of creations of pods no answer comes; whether they are stored all the same.
        self.answers_lost: bool | None = None
        # The fallback of the policy in force, and whether there are no spot nodes to be had.
        self.rule: Fallback | None = None
        self.sold_out = False
        # The most pods on a node, and the most of the namespace; None: any number.
        self.places: int | None = None
        self.most_pods: int | None = None
        # Whether a class is made on demand: a start has more time then.
        self.on_demand = self.was_on_demand = False
        # Whether the authors' own terms exclude the nodes of spot that there are.
        self.excluded = False

    @property
    def runs(self) -> Mapping[str, RunThing]:
        return self.stored["runs"]

    @property
    def pods(self) -> Mapping[str, Pod]:
        return self.stored["pods"]

    @property
    def workloads(self) -> Mapping[str, WorkloadThing]:
        return self.stored["workloads"]

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self.stored["nodes"]

    def create(self, kind: str, thing: Object) -> Any:
        """Store a new object. Raises Refused if its name is taken, or the quota is used up."""
        if thing.name in self.stored[kind]:
            raise Refused("AlreadyExists")
        there = sum(not pod.over for pod in self.pods.values() if pod.run_uid)
        owned = isinstance(thing, Pod) and thing.run_uid
        part = owned and self.most_pods is not None and there >= self.most_pods
        if kind == "pods" and (part or self.quota_used_up):
            raise Refused("QuotaExceeded", f"pods {thing.name!r} is forbidden: exceeded quota")
        if isinstance(thing, Pod):
            thing = replace(thing, fallback=self._marks(thing))
        lost = self.answers_lost if isinstance(thing, Pod) else None
        if lost is False:
            raise Refused("Timeout")
        new = self._store(kind, replace(thing, uid=f"{kind[:-1]}-{self.version + 1}"))
        if isinstance(new, Pod):
            self.ledger.created(new)
        if lost:
            raise Refused("Timeout")
        return new

    def change(self, kind: str, name: str, **fields: Any) -> Any:
        old = self.stored[kind][name]
        if all(getattr(old, field) == value for field, value in fields.items()):
            return old
        new = self._store(kind, replace(old, **fields))
        if isinstance(new, Pod):
            self.ledger.changed(new)
        return new

    def remove(self, kind: str, name: str) -> None:
        """Take an object away at once."""
        old = self.stored[kind].pop(name)
        self.version += 1
        self.log[kind].append(Event(self.version, name, None))
        if isinstance(old, Pod):
            self.ledger.gone(old, self.now)

    def delete_pod(self, name: str, uid: str, by: str, *, force: bool = False) -> Pod | None:
        """Delete as the API server does: a pod that runs on a node is given its grace period.

        Answers the pod as it is afterwards, None if it is gone. Raises Refused if it is another.
        """
        pod = self.pods.get(name)
        if pod is None:
            raise Refused("NotFound")
        if pod.uid != uid:
            raise Refused("Conflict", "the UID in the precondition does not match")
        if not pod.over:
            self.ledger.asked(pod, by, force=force)
        if force or pod.over or not pod.node:
            self.remove("pods", name)
            return None
        if pod.going is None:
            return self.change("pods", name, going=self.now)  # type: ignore[no-any-return]
        return pod

    def write_status(self, name: str, uid: str, version: int, status: Json) -> RunThing:
        """Write a Run's status. Raises Refused if the Run changed since `version`, or is gone."""
        run = self.runs.get(name)
        if run is None or run.uid != uid:
            raise Refused("NotFound")
        if run.version != version:
            raise Refused("Conflict")
        return self.change("runs", name, status=status)  # type: ignore[no-any-return]

    def write_spec(self, name: str, **fields: Any) -> None:
        """Change fields of a Run's spec; the generation counts it."""
        run = self.runs[name]
        spec = {**run.spec, **fields}
        if spec != run.spec:
            self.change("runs", name, spec=spec, generation=run.generation + 1)

    def delete_run(self, name: str, uid: str, *, foreground: bool = False) -> None:
        """Delete a Run: at once, or once the garbage collector has taken what it owns."""
        run = self.runs.get(name)
        if run is None:
            raise Refused("NotFound")
        if run.uid != uid:
            raise Refused("Conflict")
        if foreground:
            self.change("runs", name, going=run.going if run.going is not None else self.now)
        elif run.going is None:
            self.remove("runs", name)

    def _marks(self, pod: Pod) -> tuple[tuple[str, int | None], ...]:
        """What the webhook writes: the class that the pod requires, unless that is given up."""
        rule = self.rule
        if rule is None or not pod.run_uid:
            return ()
        if pod.history and rule.lasts_until(SPOT, parse_history(pod.history)):
            return ()
        waits = rule.pending
        return ((SPOT, None if waits is None else round(waits.total_seconds())),)

    def _store(self, kind: str, thing: Object) -> Any:
        self.version += 1
        new = replace(thing, version=self.version)
        self.stored[kind][new.name] = new
        self.log[kind].append(Event(self.version, new.name, new))
        return new


__all__ = ["GRACE", "KINDS", "Event", "Object", "Refused", "Server"]
