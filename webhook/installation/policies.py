"""Policies as objects of the cluster: of which files, whose each is, in which order they come."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from webhook import names
from webhook.installation.kinds import POLICIES, key
from webhook.policy import objects, source

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.installation.kinds import Key
    from webhook.policy.model import PolicyDocument

    Json = dict[str, Any]

# Who chose what an object says: nobody, for it ships with Fairlead; or the person who installs.
Origin = Literal["shipped", "given"]
SHIPPED: Final = "shipped"
GIVEN: Final = "given"
_OF_FORM: Final = ("apiVersion", "kind", "spec")


def of_files(files: Mapping[str, bytes]) -> list[Json]:
    """The objects that the documents of policy files are. Raises InvalidDocuments with every error.

    Each says what is written there, and nothing that is filled in.
    """
    return [_object(document.model) for document in source.parse(files).sound()]


def of_key(key: Key) -> bool:
    """Whether this is a policy, a class, or whatever else admins write."""
    return key.kind.name in POLICIES


def marked(wanted: Mapping[str, Any], origin: Origin) -> Json:
    """The object with a note of what is put there, by which a change of somebody's is told."""
    metadata = dict(wanted["metadata"])
    note = {names.POLICIES_APPLIED: _digest(wanted, origin)}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **note}
    return {**wanted, "metadata": metadata}


def is_still(live: Mapping[str, Any], *origins: Origin) -> bool:
    """Whether it says what an installation put there, of one of these origins."""
    note = (live["metadata"].get("annotations") or {}).get(names.POLICIES_APPLIED)
    return note in [_digest(live, origin) for origin in origins]


def says(found: Mapping[str, Any]) -> object:
    """What an object says, with all that is filled in where nothing is said.

    The API server fills in some of it when it stores an object. What is no policy says what it has.
    """
    text = orjson.dumps({"metadata": {"name": "any"}, **{k: found.get(k) for k in _OF_FORM}})
    documents = objects.read(str(found.get("kind")), text).documents
    if not documents:
        return found.get("spec")
    return documents[0].model.spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def ordered(policies: Iterable[Mapping[str, Any]]) -> dict[Key, Json]:
    """Policies in an order in which each finds what it names: classes before their complements.

    A set that goes in circles never compiles; its classes come in the order of their names.
    """
    found = {key(each): dict(each) for each in policies}
    names_of = {at.name: at for at in found if at.kind.name == names.CLASS_KIND}

    def depth(at: Key) -> int:
        seen: list[Key] = []
        step: Key | None = at
        while step is not None and step not in seen:
            seen.append(step)
            other = (found[step].get("spec") or {}).get("complementOf")
            step = names_of.get(str(other)) if step.kind.name == names.CLASS_KIND else None
        return len(seen)

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


def _digest(found: Mapping[str, Any], origin: Origin) -> str:
    text = json.dumps([origin, says(found)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
