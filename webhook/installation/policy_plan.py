"""Which policies an installation writes into a cluster, and which it leaves as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names
from webhook.errors import InstallationError, InvalidDocuments
from webhook.installation.from_files import CONFIG_MAP
from webhook.installation.kinds import key
from webhook.installation.policies import GIVEN, SHIPPED, is_still, marked, of_files, ordered, says
from webhook.policy.load import load
from webhook.policy.objects import load_objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.installation.kinds import Key

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]

_MOST: Final = 5


class Plan(NamedTuple):
    """What is written, in this order; what is as it should be; and what is left, with the reason.

    content: the hash of the set that has to be there before the webhook may take it; "" if any may.
    notes: what whoever installs wants to know.
    """

    writes: Mapping[Key, Json]
    same: Sequence[Key]
    kept: Mapping[Key, str]
    content: str = ""
    notes: Sequence[str] = ()


def shipped(wanted: Iterable[Json], live: Objects) -> Plan:
    """The classes that ship: new ones only where no policy or class is anybody else's.

    Whoever has written a class of his own may have meant it to be all there is. An exception says
    nothing of classes.
    """
    objects = ordered(marked(each, SHIPPED) for each in wanted)
    others = [
        at
        for at, each in live.items()
        if at.kind.name != names.EXCEPTION_KIND
        and not is_still(each, SHIPPED)
        and not _says_the_same(each, objects.get(at))
    ]
    why = "somebody has changed it, or written it"
    return _planned(
        {at: each for at, each in objects.items() if at in live or not others},
        live,
        {at: why for at in others if at in objects},
    )


def given(wanted: Iterable[Json], live: Objects) -> Plan:
    """Policies that the person who installs has given; what others have changed since stays."""
    objects = ordered(marked(each, GIVEN) for each in wanted)
    why = "somebody has changed it since (kubectl replace -f FILE has yours written all the same)"
    kept = {
        at: why
        for at, each in live.items()
        if at in objects
        and not is_still(each, GIVEN, SHIPPED)
        and not _says_the_same(each, objects[at])
    }
    return _planned(objects, live, kept)


def taken_over(config_map: Mapping[str, Any], ships: Iterable[Json], live: Objects) -> Plan:
    """The documents of a ConfigMap that the webhook has served from until now, as objects.

    Not one of them is lost or changed: the set has the same content afterwards. Raises
    InstallationError, with the cure, where that cannot be: a file with errors, an object in the
    cluster that says something else, or that would be in force from now on.
    """
    files = {name: text.encode() for name, text in (config_map.get("data") or {}).items()}
    files = {name: text for name, text in files.items() if is_read(name)}
    where = str(CONFIG_MAP)
    try:
        content = load(files).policies.hash
        documents = of_files(files)
    except InvalidDocuments as error:
        raise InstallationError(
            f"the policies in {where} cannot be taken over, for they have errors: "
            f"{_some(error.findings)}. Mend them there, or give others: --policies DIR"
        ) from None
    if config_map.get("binaryData"):
        raise InstallationError(
            f"{where} has binaryData, which is not read. Take it out, or give the policies: "
            "--policies DIR"
        )
    known = {key(each): each for each in ships}
    objects = ordered(
        marked(each, SHIPPED if _says_the_same(each, known.get(key(each))) else GIVEN)
        for each in documents
    )
    differ = [at for at, each in live.items() if not _says_the_same(each, objects.get(at))]
    if differ:
        raise InstallationError(
            f"the webhook's policies are those of {where}, and the cluster has others beside: "
            f"{_some(differ)}. To take over the ConfigMap's, delete those objects; if they are "
            f"what you mean, delete the ConfigMap (kubectl -n {names.NAMESPACE} delete configmap "
            f"{CONFIG_MAP.name}); or give the policies: --policies DIR"
        )
    count = f"{len(objects)} policies and classes of {where} become objects of the cluster"
    after = f"{where} is not read any more; it is left as it is"
    return _planned(objects, live, {})._replace(content=content, notes=(count, after))


def is_read(name: str) -> bool:
    """Whether the webhook reads a file of this name in a ConfigMap (webhook.server.folder)."""
    ending = name.endswith((".yaml", ".yml", ".json"))
    return ending and not name.endswith((".test.yaml", ".test.yml")) and not name.startswith(".")


def check(plan: Plan, live: Objects) -> None:
    """Raises InstallationError if the set would not compile with what is to be written.

    A set that does not compile as it is, is its admins' to mend: the webhook serves the last good
    one meanwhile.
    """
    if not plan.writes:
        return
    try:
        after = load_objects(_texts({**live, **plan.writes}))
    except InvalidDocuments as error:
        if not plan.content and not _compiles(live):
            return
        raise InstallationError(
            f"with the policies that are in the cluster these are no set: {_some(error.findings)}. "
            "Nothing has been changed"
        ) from None
    if plan.content and after.policies.hash != plan.content:
        raise InstallationError(
            f"the policies of {CONFIG_MAP} would not be the same as objects: this is a bug. "
            "Nothing has been changed; give them: --policies DIR"
        )


def same_content(plan: Plan, live: Objects) -> bool:
    """Whether the cluster's set is the one that has to be there."""
    return not plan.content or content_of(live) == plan.content


def content_of(objects: Objects) -> str:
    """The hash of the set that the objects are. Raises InvalidDocuments if they are none."""
    return load_objects(_texts(objects)).policies.hash


def _planned(objects: Objects, live: Objects, kept: Mapping[Key, str]) -> Plan:
    same = [at for at in objects if at in live and _says_the_same(live[at], objects[at])]
    left: Collection[Key] = {*same, *kept}
    return Plan({at: each for at, each in objects.items() if at not in left}, same, kept)


def _says_the_same(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    return other is not None and says(one) == says(other)


def _compiles(live: Objects) -> bool:
    try:
        load_objects(_texts(live))
    except InvalidDocuments:
        return False
    return True


def _texts(objects: Objects) -> dict[str, bytes]:
    return {
        f"{at.kind.resource}/{at.name}": orjson.dumps(
            {
                "apiVersion": at.kind.api_version,
                "kind": at.kind.name,
                "metadata": {"name": at.name},
                "spec": each.get("spec"),
            }
        )
        for at, each in objects.items()
    }


def _some(found: Sequence[object]) -> str:
    errors = [each for each in found if getattr(each, "severity", "error") == "error"]
    more = f", and {len(errors) - _MOST} more" if len(errors) > _MOST else ""
    return "; ".join(map(str, errors[:_MOST])) + more
