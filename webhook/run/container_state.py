"""What a pod's containers say of it: why it waits, since when it runs, how it ended."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.run.observed import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The kubelet keeps 4,096 bytes of a termination message, or 2,048 of the log. The last are the
# ones that tell, and thousands of pods may have one each.
LONGEST_MESSAGE: Final = 2048
# What every container says while its pod starts: no reason for anything.
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})


class Containers:
    """The containers of one raw pod: init containers first, in the order of the spec."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        annotations = raw["metadata"].get("annotations") or {}
        mains = [each["name"] for each in spec.get("containers") or ()]
        named = annotations.get(names.DEFAULT_CONTAINER)
        self._main = named if named in mains else next(iter(mains), "")
        # How a sidecar ends does not decide how its pod does (KEP-753).
        sidecars = {
            each["name"]
            for each in spec.get("initContainers") or ()
            if each.get("restartPolicy") == "Always"
        }
        self._init = [*_in_order(spec.get("initContainers"), status.get("initContainerStatuses"))]
        self._all = [
            *self._init,
            *_in_order(spec.get("containers"), status.get("containerStatuses")),
        ]
        self._deciding = [each for each in self._all if each["name"] not in sidecars]

    def waiting(self) -> tuple[str, str] | None:
        """Reason and message of the first that waits for more than its turn."""
        for each in self._all:
            state = (each.get("state") or {}).get("waiting") or {}
            reason = state.get("reason") or ""
            if reason and reason not in _STARTING:
                return sys.intern(reason), sys.intern((state.get("message") or "")[:1024])
        return None

    def running_since(self) -> str:
        """When the main container started; empty before."""
        for each in self._all:
            if each["name"] == self._main:
                return _started(each)
        return ""

    def init_since(self) -> str:
        """When the first of the init containers started; empty before, and without one."""
        return min(filter(None, map(_started, self._init)), default="")

    def exit(self) -> Exit | None:
        """The main container's exit if it failed, else the first that failed, else the main's."""
        ended = list(self._exits())
        main = next((each for each in ended if each.container == self._main), None)
        if main is not None and main.code != 0:
            return main
        return next((each for each in ended if each.code != 0), main)

    def _exits(self) -> Iterator[Exit]:
        for each in self._deciding:
            state = (each.get("state") or {}).get("terminated")
            if state is None and "waiting" in (each.get("state") or {}):
                # Of a container that it does not find again the kubelet says that it waits.
                state = (each.get("lastState") or {}).get("terminated")
            if state is not None:
                yield Exit(
                    container=sys.intern(each["name"]),
                    code=state.get("exitCode") or 0,
                    signal=state.get("signal") or 0,
                    reason=sys.intern(state.get("reason") or ""),
                    message=(state.get("message") or "")[-LONGEST_MESSAGE:],
                    finished_at=state.get("finishedAt") or "",
                )


def _started(container: Mapping[str, Any]) -> str:
    state = container.get("state") or {}
    begun = (state.get("running") or state.get("terminated") or {}).get("startedAt")
    return begun or ""


def _in_order(
    specified: list[Mapping[str, Any]] | None, statuses: list[Mapping[str, Any]] | None
) -> Iterator[Mapping[str, Any]]:
    """The statuses in the order of the spec: the kubelet sorts those of containers by name."""
    by_name = {each["name"]: each for each in statuses or ()}
    for each in specified or ():
        if each["name"] in by_name:
            yield by_name[each["name"]]
