"""Decide which policies an installation writes, and write them.

One module: the plan is read from the cluster, checked against it and written to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError, InstallationError, InvalidDocuments
from webhook.installation.apply import Result, apply, get_object
from webhook.installation.manifests import CONFIG_MAP, WEBHOOK
from webhook.installation.policy_files import mounted_config_map, takes_files
from webhook.installation.policy_objects import (
    GIVEN,
    SHIPPED,
    is_still,
    normalized,
    of_key,
    ordered,
    read_policies,
    texts_of,
)
from webhook.judgement.set_judgement import load_objects
from webhook.validating import POLICIES as JUDGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]

_MOST: Final = 5
_KEPT_SHIPPED: Final = "it was changed or written in the cluster"
_KEPT_GIVEN: Final = (
    "it was changed in the cluster since (kubectl replace -f FILE writes yours anyway)"
)
_FAILED: Final = "failed calling webhook"
_REFUSED: Final = f'admission webhook "{JUDGING}" denied the request'


class Plan(NamedTuple):
    """What is written, in this order; what is already right; and what is kept, with the reason.

    notes: messages for the user who installs.
    """

    writes: Mapping[Key, Json]
    same: Sequence[Key]
    kept: Mapping[Key, str]
    notes: Sequence[str] = ()


def plan_writes(wanted: Iterable[Json], live: Objects) -> Plan:
    """Plan the writes of marked policies. What others have written or changed stays.

    New classes that ship are added only if all policies and classes are shipped ones: a user who
    has written a class may want no other. Exceptions and sources do not count.
    """
    objects = ordered(wanted)
    ships = {at for at, each in objects.items() if is_still(each, SHIPPED)}
    same = [at for at in objects if at in live and _is_same_policy(live[at], objects[at])]
    others = {
        at: each for at, each in live.items() if at not in same and not is_still(each, SHIPPED)
    }
    closed = any(at.kind.name in (names.CLASS_KIND, names.POLICY_KIND) for at in others)
    kept = {
        at: _KEPT_SHIPPED if at in ships else _KEPT_GIVEN
        for at, each in others.items()
        if at in ships or (at in objects and not is_still(each, GIVEN))
    }
    writes = {
        at: each
        for at, each in objects.items()
        if at not in {*same, *kept} and (at in live or at not in ships or not closed)
    }
    return Plan(writes, same, kept)


def check(plan: Plan, live: Objects) -> None:
    """Raise InstallationError if the set would not compile with what is to be written.

    A set that does not compile already is for its admins to fix; meanwhile the webhook uses the
    last good one.
    """
    if not plan.writes:
        return
    try:
        content_of({**live, **plan.writes})
    except InvalidDocuments as error:
        if not _compiles(live):
            return
        raise InstallationError(
            "with the policies that are in the cluster these do not compile: "
            f"{_some(error.findings)}. Nothing has been changed"
        ) from None


def content_of(objects: Objects) -> str:
    """Return the hash of the set of these objects. Raises InvalidDocuments if they do not
    compile."""
    return load_objects(texts_of(objects)).policies.hash


def _is_same_policy(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> bool:
    return other is not None and normalized(one) == normalized(other)


def _compiles(live: Objects) -> bool:
    try:
        return bool(content_of(live))
    except InvalidDocuments:
        return False


def _some(found: Sequence[object]) -> str:
    errors = [each for each in found if getattr(each, "severity", "error") == "error"]
    more = f", and {len(errors) - _MOST} more" if len(errors) > _MOST else ""
    return "; ".join(map(str, errors[:_MOST])) + more


class NotAccepted(InstallationError):
    """The webhook that serves does not answer, or rejects a policy; a later one may accept it."""

    def __init__(self, words: str, *, answered: bool) -> None:
        super().__init__(words)
        self.answered = answered


async def plan_policies(client: Client, objects: Objects, *, given: bool) -> Plan:
    """Plan the writes of policies; nothing is written yet.

    `objects` is all that is installed; `given`: the user has chosen its policies. Raises
    ClusterError, and InstallationError with every reason not to start.
    """
    wanted = [each for key, each in objects.items() if of_key(key)]
    live = await read_policies(client)
    before = await get_object(client, WEBHOOK.path)
    if WEBHOOK not in objects or takes_files(objects[WEBHOOK]):
        if before and not takes_files(before) and live and not given:
            raise InstallationError(
                f"the webhook's policies are {len(live)} objects of the cluster, and files would "
                "take their place: name them by --policies DIR"
            )
        return Plan({}, (), {})
    plan = _plan(wanted, live, before, given=given)
    check(plan, live)
    return plan


async def write(client: Client, key: Key, wanted: Json) -> Result:
    """Write one policy so that its spec is as wanted, and has nothing else.

    Raises as `apply` does, or NotAccepted.
    """
    try:
        result = await apply(client, key, wanted)
        stored = await client.get(key.path)
        if normalized({**stored, "kind": key.kind.name}) != normalized(wanted):
            # An apply keeps fields that others own.
            query = {"fieldManager": names.INSTALL_MANAGER}
            await client.replace(key.path, {**stored, "spec": wanted["spec"]}, query=query)
    except (ClusterError, InstallationError) as error:
        words = str(error)
        if _FAILED in words or _REFUSED in words:
            raise NotAccepted(words, answered=_FAILED not in words) from error
        raise
    return result


def _plan(wanted: list[Json], live: Objects, before: Json | None, *, given: bool) -> Plan:
    plan = plan_writes(wanted, live)
    if before is None or not takes_files(before):
        return plan
    name = mounted_config_map(before)
    where = str(CONFIG_MAP._replace(name=name)) if name else "not in a ConfigMap"
    if not given:
        raise InstallationError(
            f"the webhook's policies are files ({where}), and objects of the cluster would take "
            "their place: give the files, and they become objects: --policies DIR; or keep them: "
            "--policies-from-files"
        )
    note = f"the policies given take the place of files ({where}), which are not read any more"
    return plan._replace(notes=(note,))
