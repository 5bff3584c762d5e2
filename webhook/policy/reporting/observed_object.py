"""One object of a cluster as its status is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.policy.status_model import (
    ClassStatus,
    ExceptionStatus,
    ObjectStatus,
    PolicyStatus,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# By resource, the model of its status.
MODELS: Final[Mapping[str, type[ObjectStatus]]] = {
    names.PLACEMENT_POLICIES: PolicyStatus,
    names.CAPACITY_CLASSES: ClassStatus,
    names.PLACEMENT_EXCEPTIONS: ExceptionStatus,
}

Version: TypeAlias = tuple[str, int]


class ObservedObject(NamedTuple):
    """What the API server has of one object.

    text: what a policy set is made of, as JSON: no status
    """

    resource: str
    name: str
    uid: str
    generation: int
    text: bytes
    status: ObjectStatus

    @property
    def place(self) -> str:
        """Its resource and name: `placementpolicies/spot`."""
        return f"{self.resource}/{self.name}"

    @property
    def version(self) -> Version:
        """What tells apart two things that were written under one name: uid and generation."""
        return self.uid, self.generation
