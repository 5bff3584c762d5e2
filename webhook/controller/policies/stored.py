"""The objects that policies are written in, as the controller remembers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from webhook.kube.policy_objects import GROUP, PolicyObjects, text_of
from webhook.policy.reporting.observed_object import MODELS, ObservedObject

if TYPE_CHECKING:
    from webhook.kube.client import Client
    from webhook.policy.status_model import ObjectStatus


class Stored(NamedTuple):
    """One object, and the version that it was read at."""

    seen: ObservedObject
    version: str

    @property
    def path(self) -> str:
        """Where its status is written."""
        return f"{GROUP}/{self.seen.resource}/{self.seen.name}/status"


def stored(resource: str, raw: dict[str, Any]) -> Stored:
    """Remember a raw object, as an answer, a list or a watch gives it."""
    metadata = raw["metadata"]
    seen = ObservedObject(
        resource,
        metadata["name"],
        metadata["uid"],
        metadata.get("generation") or 0,
        text_of(resource, raw),
        _status(resource, raw.get("status")),
    )
    return Stored(seen, metadata["resourceVersion"])


def _status(resource: str, raw: object) -> ObjectStatus:
    model = MODELS[resource]
    try:
        return model.model_validate(raw or {})
    except ValidationError:
        # Somebody else wrote it: it is written anew.
        return model()


class StoredObjects(PolicyObjects[Stored]):
    """All of them, as `Stored`: a change of a status is one, too."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, stored)

    def get(self, resource: str, name: str) -> Stored | None:
        """One object; None if there is none."""
        return self.caches[resource].get(name)

    def offer(self, resource: str, raw: dict[str, Any]) -> None:
        """Take what the API server answered to a write."""
        new = stored(resource, raw)
        self.caches[resource].offer(new.seen.name, new, new.version)
