"""A Run as it is remembered: what is asked of it often, and the whole of it as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from webhook import names

# Which objects lack in a list.
_TYPE: Final = {"apiVersion": names.API_VERSION, "kind": names.RUN_KIND}


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One version of a Run.

    The whole object stays JSON text, without managedFields: a thousand runs that are over take
    some megabytes so, and a tenth of what they would take as dictionaries.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    version: str
    phase: str
    deleted: bool
    text: bytes

    @property
    def key(self) -> str:
        """Its key in caches and queues."""
        return f"{self.namespace}/{self.name}"

    def raw(self) -> dict[str, Any]:
        """The object, to be changed as one likes."""
        whole: dict[str, Any] = orjson.loads(self.text)
        return whole


def store(raw: dict[str, Any]) -> StoredRun:
    """Remember a raw Run, as an answer, a list or a watch gives it."""
    metadata = {key: value for key, value in raw["metadata"].items() if key != "managedFields"}
    return StoredRun(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation") or 0,
        version=metadata["resourceVersion"],
        phase=(raw.get("status") or {}).get("phase") or "",
        deleted=bool(metadata.get("deletionTimestamp")),
        text=orjson.dumps({**_TYPE, **raw, "metadata": metadata}),
    )
