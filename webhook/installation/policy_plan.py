"""Decide which policies an installation writes, and write them.

One module: the plan is read from the cluster, checked against it and written to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError, InstallationError, InvalidDocuments
from webhook.installation.apply import Result, apply, get_object
from webhook.installation.manifests import CONFIG_MAP, WEBHOOK
from webhook.installation.object_kinds import Key, key
from webhook.installation.policy_files import mounted_config_map, takes_files
from webhook.installation.policy_objects import (
    GIVEN,
    SHIPPED,
    is_read,
    is_still,
    marked,
    normalized,
    of_files,
    of_key,
    ordered,
    read_policies,
    texts_of,
)
from webhook.judgement.cluster_objects import load_objects
from webhook.policy.load import load
from webhook.validating import POLICIES as JUDGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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

    content: the hash that the set must have before the webhook may use it; "" if any may.
    notes: messages for the user who installs.
    """

    writes: Mapping[Key, Json]
    same: Sequence[Key]
    kept: Mapping[Key, str]
    content: str = ""
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


def taken_over(config_map: Mapping[str, Any], ships: Iterable[Json], live: Objects) -> Plan:
    """Return the documents of the ConfigMap that the webhook has read until now, as objects.

    None is lost or changed: the set has the same content afterwards. Raises InstallationError, with
    the cure, if that is not possible: a file has errors, or an object in the cluster differs or
    would come into force.
    """
    files = {name: text.encode() for name, text in (config_map.get("data") or {}).items()}
    files = {name: text for name, text in files.items() if is_read(name)}
    where = str(CONFIG_MAP)
    try:
        content = load(files).policies.hash
        documents = of_files(files)
    except InvalidDocuments as error:
        raise InstallationError(
            f"the policies in {where} cannot be taken over, because they have errors: "
            f"{_some(error.findings)}. Fix them there, or give others: --policies DIR"
        ) from None
    if config_map.get("binaryData"):
        raise InstallationError(
            f"{where} has binaryData, which is not read. Take it out, or give the policies: "
            "--policies DIR"
        )
    known = {key(each): each for each in ships}
    objects = ordered(
        marked(each, SHIPPED if _is_same_policy(each, known.get(key(each))) else GIVEN)
        for each in documents
    )
    differ = [at for at, each in live.items() if not _is_same_policy(each, objects.get(at))]
    if differ:
        raise InstallationError(
            f"the webhook's policies are those of {where}, and the cluster has other "
            f"policies too: {_some(differ)}. To take over the ConfigMap's, delete those "
            "objects; if they are what you mean, delete the ConfigMap (kubectl -n "
            f"{names.NAMESPACE} delete configmap {CONFIG_MAP.name}); or give the policies: "
            "--policies DIR"
        )
    count = f"{len(objects)} policies and classes of {where} become objects of the cluster"
    after = f"{where} is not read any more; it is left as it is"
    writes = {at: each for at, each in objects.items() if at not in live}
    return Plan(writes, [at for at in objects if at in live], {}, content, (count, after))


def check(plan: Plan, live: Objects) -> None:
    """Raise InstallationError if the set would not compile with what is to be written.

    A set that does not compile already is for its admins to fix; meanwhile the webhook uses the
    last good one.
    """
    if not plan.writes:
        return
    try:
        content = content_of({**live, **plan.writes})
    except InvalidDocuments as error:
        if not plan.content and not _compiles(live):
            return
        raise InstallationError(
            "with the policies that are in the cluster these do not compile: "
            f"{_some(error.findings)}. Nothing has been changed"
        ) from None
    if plan.content and content != plan.content:
        raise InstallationError(
            f"the policies of {CONFIG_MAP} would not be the same as objects: this is a bug. "
            "Nothing has been changed; give them: --policies DIR"
        )


def same_content(plan: Plan, live: Objects) -> bool:
    """Return whether the cluster's set has the content that the plan requires."""
    return not plan.content or content_of(live) == plan.content


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
    plan = await _plan(client, wanted, live, before, given=given)
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


async def _plan(
    client: Client, wanted: list[Json], live: Objects, before: Json | None, *, given: bool
) -> Plan:
    if before is None or not takes_files(before):
        return plan_writes(wanted, live)
    if given:
        plan = plan_writes(wanted, live)
        given_up = f"those in {CONFIG_MAP}, which is not read any more"
        return plan._replace(notes=(f"the policies given take the place of {given_up}",))
    name = mounted_config_map(before)
    if not name:
        raise InstallationError(
            f"the policies of {WEBHOOK} are files that are not in a ConfigMap, and so not to be "
            "seen from here: give them by --policies DIR, and they become objects of the cluster"
        )
    config_map = await get_object(client, CONFIG_MAP._replace(name=name).path)
    if config_map is None:
        return plan_writes(wanted, live)
    if any(each["kind"] == names.SOURCE_KIND for each in wanted):
        raise InstallationError(
            f"the policies of {CONFIG_MAP} become objects first: run the same command without "
            "--source FILE, and then with it. Nothing has been changed"
        )
    return taken_over(config_map, wanted, live)
