"""Brings policies into the cluster: those that ship, those given, or those of before in files."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import ClusterError, InstallationError
from webhook.installation import policy_plan
from webhook.installation.apply import Result, apply, read
from webhook.installation.from_files import (
    CONFIG_MAP,
    WEBHOOK,
    mounted_config_map,
    takes_files,
)
from webhook.installation.kinds import KINDS, POLICIES, Key, in_order, key_of
from webhook.installation.policies import of_key, says
from webhook.validating import POLICIES as JUDGING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.policy_plan import Plan
    from webhook.kube.client import Client

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]

_FAILED: Final = "failed calling webhook"
_REFUSED: Final = f'admission webhook "{JUDGING}" denied the request'


class Unanswered(InstallationError):
    """Policies are judged when they are written, and nobody answers who could."""


class Refused(InstallationError):
    """The webhook that serves refuses a policy; one of another version may know it."""


async def look(client: Client, objects: Objects, *, given: bool) -> Plan:
    """What is to become of policies; nothing is written yet.

    `objects` is all that is to be installed, `given` says that its policies are somebody's choice.
    Raises ClusterError, and InstallationError with every reason for which it had better not begin.
    """
    wanted = [each for key, each in objects.items() if of_key(key)]
    live = await read_policies(client)
    before = await read(client, WEBHOOK.path)
    if WEBHOOK not in objects or takes_files(objects[WEBHOOK]):
        if before and not takes_files(before) and live and not given:
            raise InstallationError(
                f"the webhook's policies are {len(live)} objects of the cluster, and files would "
                "take their place: say which, by --policies DIR"
            )
        return policy_plan.given((), {})
    plan = await _planned(client, wanted, live, before, given=given)
    policy_plan.check(plan, live)
    return plan


async def read_policies(client: Client) -> dict[Key, Json]:
    """Every policy, class and exception of the cluster; none of a kind that it does not know."""
    found: list[Json] = []
    for kind in KINDS:
        if kind.name not in POLICIES:
            continue
        try:
            listing = await client.list(key_of(kind.name, "any").collection, lambda each: each)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            continue
        # Within a list an object does not say what it is.
        own = {"apiVersion": kind.api_version, "kind": kind.name}
        found += [{**each, **own} for each in listing.items]
    return in_order(found)


async def write(client: Client, key: Key, wanted: Json) -> Result:
    """Have one there as it is wanted, and nothing beside.

    Raises as `apply` does, or Unanswered, or Refused.
    """
    try:
        result = await apply(client, key, wanted)
        stored = await client.get(key.path)
        if says({**stored, "kind": key.kind.name}) != says(wanted):
            # What others own by the name of a field stays with an apply.
            await client.replace(key.path, {**stored, "spec": wanted["spec"]})
    except (ClusterError, InstallationError) as error:
        if _FAILED in str(error):
            raise Unanswered(str(error)) from error
        if _REFUSED in str(error):
            raise Refused(str(error)) from error
        raise
    return result


async def _planned(
    client: Client, wanted: list[Json], live: Objects, before: Json | None, *, given: bool
) -> Plan:
    if before is None or not takes_files(before):
        return (policy_plan.given if given else policy_plan.shipped)(wanted, live)
    if given:
        plan = policy_plan.given(wanted, live)
        given_up = f"those in {CONFIG_MAP}, which is not read any more"
        return plan._replace(notes=(f"the policies given take the place of {given_up}",))
    name = mounted_config_map(before)
    if not name:
        raise InstallationError(
            f"the policies of {WEBHOOK} are files that are not in a ConfigMap, and so not to be "
            "seen from here: give them by --policies DIR, and they become objects of the cluster"
        )
    config_map = await read(client, CONFIG_MAP._replace(name=name).path)
    if config_map is None:
        return policy_plan.shipped(wanted, live)
    return policy_plan.taken_over(config_map, wanted, live)
