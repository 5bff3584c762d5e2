"""The AdmissionReview of a policy set's object: which write it is, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.admission import review
from webhook.errors import InvalidReview

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.placement.shapes import JsonObject

# Which of the two objects a review of each operation carries (admission/v1 types.go).
_NEW: Final = ("CREATE", "UPDATE")
_OLD: Final = ("UPDATE", "DELETE")


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """A write of an object, by resource and name; `user` as the API server knows them.

    `old` is as it is stored, None if it is created; `new` as it shall be, None if it is deleted.
    """

    uid: str
    operation: str
    resource: str
    name: str
    user: str
    dry_run: bool
    old: JsonObject | None
    new: JsonObject | None


def parse(body: bytes, resources: Collection[str]) -> PolicyRequest:
    """The write of one of these resources of ours. Raises InvalidReview with the reason."""
    request = review.read(body)
    operation = request.get("operation")
    if operation not in (*_NEW, *_OLD):
        seen = str(operation)[:50]
        raise InvalidReview(f"request.operation: want CREATE, UPDATE or DELETE, not {seen!r}")
    asked = review.member(request, "resource", dict, "request.resource")
    resource = review.optional(asked, "resource", "request.resource.resource")
    if asked.get("group") != names.GROUP or resource not in resources:
        wanted = ", ".join(sorted(resources))
        raise InvalidReview(
            f"request.resource: want {wanted} of {names.GROUP}, not {str(resource)[:50]!r}"
        )
    if request.get("subResource"):
        raise InvalidReview("request.subResource: want the object itself")
    new = _object(request, "object") if operation in _NEW else None
    old = _object(request, "oldObject") if operation in _OLD else None
    metadata = review.member((old or new or {}), "metadata", dict, "request.object.metadata")
    user = review.member(request, "userInfo", dict, "request.userInfo")
    return PolicyRequest(
        uid=request["uid"],
        operation=str(operation),
        resource=resource,
        # Of a whole collection that is deleted the request has no name, but each object has.
        name=review.name_in(metadata, "request.object.metadata.name"),
        user=review.optional(user, "username", "request.userInfo.username"),
        dry_run=request.get("dryRun") is True,
        old=old,
        new=new,
    )


def _object(request: JsonObject, member: str) -> JsonObject:
    found: JsonObject = review.member(request, member, dict, f"request.{member}")
    metadata = review.member(found, "metadata", dict, f"request.{member}.metadata")
    review.member(metadata, "name", str, f"request.{member}.metadata.name")
    return found
