"""Policies as objects of the cluster: their files, owners and order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from webhook import names
from webhook.installation.object_kinds import POLICIES, key
from webhook.installation.policy_files import digest, note_of, noted
from webhook.policy import cluster_objects, policy_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.installation.object_kinds import Key
    from webhook.policy.kinds import PolicyDocument

    Json = dict[str, Any]

# Where an object comes from: it ships with Fairlead, or the user who installs gave it.
Origin = Literal["shipped", "given"]
SHIPPED: Final = "shipped"
GIVEN: Final = "given"
_OF_FORM: Final = ("apiVersion", "kind", "spec")


def of_files(files: Mapping[str, bytes]) -> list[Json]:
    """The documents of policy files as objects. Raises InvalidDocuments with every error.

    An object has the fields that are written, without default values.
    """
    return [_object(document.model) for document in policy_documents.parse(files).sound()]


def of_key(key: Key) -> bool:
    """Whether this is a policy, a class or an exception."""
    return key.kind.name in POLICIES


def marked(wanted: Mapping[str, Any], origin: Origin) -> Json:
    """The object with an annotation that shows later whether another client has changed it."""
    return noted(wanted, digest([origin, normalized(wanted)]))


def is_still(live: Mapping[str, Any], *origins: Origin) -> bool:
    """Whether it is as an installation wrote it, with one of these origins."""
    spec = normalized(live)
    return note_of(live) in [digest([origin, spec]) for origin in origins]


def normalized(found: Mapping[str, Any]) -> object:
    """The spec of an object with all default values.

    The API server fills in some of them when it stores an object. A spec that is not valid is
    returned as it is.
    """
    text = orjson.dumps({"metadata": {"name": "any"}, **{k: found.get(k) for k in _OF_FORM}})
    documents = cluster_objects.read_object(str(found.get("kind")), text).documents
    if not documents:
        return found.get("spec")
    return documents[0].model.spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def ordered(policies: Iterable[Mapping[str, Any]]) -> dict[Key, Json]:
    """Policies in an order for one-by-one writes: classes before their complements.

    Circular classes never compile; they are ordered by name.
    """
    found = {key(each): dict(each) for each in policies}
    names_of = {at.name: at for at in found if at.kind.name == names.CLASS_KIND}

    def depth(at: Key) -> int:
        visited: list[Key] = []
        step: Key | None = at
        while step is not None and step not in visited:
            visited.append(step)
            other = (found[step].get("spec") or {}).get("complementOf")
            step = names_of.get(str(other)) if step.kind.name == names.CLASS_KIND else None
        return len(visited)

    return {at: found[at] for at in sorted(found, key=lambda at: (at.rank, depth(at), at.name))}


def _object(model: PolicyDocument) -> Json:
    metadata = {
        field: value
        for field in ("labels", "annotations")
        if (value := getattr(model.metadata, field))
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": model.kind,
        "metadata": {"name": model.name, **metadata},
        "spec": model.spec.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude_none=True
        ),
    }
