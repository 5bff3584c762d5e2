"""What one controller sees: every kind by itself, in order, and later than it happens."""

from __future__ import annotations

from typing import Any

from tests.run.machine.server import KINDS, Object, Server
from tests.run.machine.things import Node, Pod


class Caches:
    """Caches of every kind. They know nothing before their first list."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._held: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
        self._read: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._gone: dict[str, float] = {}
        # Pods that are gone, by uid, as they were last known.
        self.gone_pods: dict[str, Pod] = {}
        # By the uid of the Run: the names of pods that left the watch, and were not read since.
        self.unwatched: dict[str, set[str]] = {}

    @property
    def whole(self) -> bool:
        """Whether every kind has been listed without which nothing is done."""
        return not set(self.unlisted) - {"nodes"}

    def nodes(self) -> dict[str, Node | float] | None:
        """The nodes that were ever heard of, by name, or since when they are gone; None before the
        first list."""
        if "nodes" not in self._read:
            return None
        return {**self._gone, **self._held["nodes"]}

    def gone_since(self, name: str) -> float:
        """Since when there is no node of this name, as far as is known; from now on at least."""
        return self._gone.setdefault(name, self._server.now)

    @property
    def unlisted(self) -> list[str]:
        """The kinds of which nothing is known yet."""
        return [kind for kind in KINDS if kind not in self._read]

    def held(self, kind: str) -> dict[str, Any]:
        """The objects of one kind as they are known, by name."""
        return self._held[kind]

    def behind(self, kind: str) -> int:
        """How many events are still to come; 0 before the first list."""
        return len(self._server.log[kind]) - self._read[kind] if kind in self._read else 0

    def relist(self, kind: str) -> set[str]:
        """Begin again with what is stored now. Answers the names of what differs."""
        before = self._held[kind]
        self._held[kind] = {
            name: thing for name, thing in self._server.stored[kind].items() if _is_watched(thing)
        }
        self._read[kind] = len(self._server.log[kind])
        self._told[kind] = self._server.version
        after = self._held[kind]
        if kind == "pods":
            for name, pod in before.items():
                self._miss(pod, after.get(name))
        if kind == "nodes":
            for name in before.keys() - after.keys():
                self.gone_since(name)
            for name in after:
                self._gone.pop(name, None)
        return {name for name in {**before, **after} if before.get(name) != after.get(name)}

    def hear(self, kind: str, events: int) -> set[str]:
        """Take the next few events. Answers the names that they were about."""
        if kind not in self._read:
            return set()
        begin = self._read[kind]
        heard = self._server.log[kind][begin : begin + events]
        for event in heard:
            self._told[kind] = event.version
            known = self._held[kind].get(event.name)
            if known is not None and known.version > event.version:
                continue
            self._set(kind, event.name, event.thing if _is_watched(event.thing) else None)
        self._read[kind] = begin + len(heard)
        return {event.name for event in heard}

    def answered(self, kind: str, thing: Object) -> None:
        """Take what the server answered, unless something newer is known."""
        known = self._held[kind].get(thing.name)
        latest = max(self._told.get(kind, 0), known.version if known else 0)
        if thing.version > latest:
            self._set(kind, thing.name, thing)

    def _miss(self, pod: Pod, after: Pod | None) -> None:
        if pod.run_uid and (after is None or after.uid != pod.uid):
            self.gone_pods[pod.uid] = pod
            self.unwatched.setdefault(pod.run_uid, set()).add(pod.name)

    def _set(self, kind: str, name: str, thing: Object | None) -> None:
        if kind == "pods" and name in self._held[kind]:
            self._miss(self._held[kind][name], thing)  # type: ignore[arg-type]
        if thing is None:
            self._held[kind].pop(name, None)
            if kind == "nodes":
                self.gone_since(name)
        else:
            self._held[kind][name] = thing
            if kind == "nodes":
                self._gone.pop(name, None)


def _is_watched(thing: Object | None) -> bool:
    """Whether the watch selects it: a pod by a label, which anybody may take away."""
    return not (isinstance(thing, Pod) and thing.bare)
