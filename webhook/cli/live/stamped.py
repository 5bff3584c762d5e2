"""The stamp of a live pod: what was done to it when it was created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.admission import stamp
from webhook.cli.harmless import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.workloads.object import Object


class Stamp(NamedTuple):
    """What it says: the set's hash, and the fields that each policy is credited with.

    `left_alone` is why the pod was left alone, or empty; `exceptions` the policies that each took
    away. `whole` is the stamp as it stands.
    """

    set_hash: str
    policies: Mapping[str, Sequence[str]]
    left_alone: str
    exceptions: Mapping[str, Sequence[str]]
    whole: Mapping[str, Any]

    @property
    def named(self) -> list[str]:
        """The policies that took part, then those that an exception took away."""
        return [*self.policies, *(each for gone in self.exceptions.values() for each in gone)]


def read(pod: Object) -> Stamp | None:
    """The pod's stamp; None if it has none that can be read.

    Whoever may write pods may have written it: its texts are made harmless for a terminal.
    """
    annotations = pod.metadata.get("annotations")
    found = stamp.read(annotations.get(names.PLACEMENT) if isinstance(annotations, dict) else None)
    if found is None:
        return None
    return Stamp(
        harmless(str(found.get("set") or "")),
        _lists(found.get("policies")),
        harmless(str(found.get("leftAlone") or "")),
        _lists(found.get("exceptions")),
        found,
    )


def _lists(value: object) -> Mapping[str, Sequence[str]]:
    return {
        harmless(str(key)): [harmless(str(each)) for each in items]
        for key, items in (value.items() if isinstance(value, dict) else ())
        if isinstance(items, list)
    }
