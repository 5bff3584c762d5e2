"""What an installation reads and decides before its first write, and what its writes would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from webhook import names
from webhook.errors import ClusterError
from webhook.installation.apply import Result, applied
from webhook.installation.changes import (
    CONCURRENT_REQUESTS,
    find_obstacles,
    read_installed,
    read_live,
    read_losses,
    refuse_managed,
)
from webhook.installation.foreign_changes import content
from webhook.installation.manifests import CONFIG_MAP, CONTROLLER
from webhook.installation.narrowing import keep_narrowing, read_whole
from webhook.installation.policy_files import has_own_policies
from webhook.installation.policy_plan import Plan, of_key, plan_policies
from webhook.installation.probe import find_namespace
from webhook.installation.restoring import SHARED, DryRuns
from webhook.installation.stored_options import check_last_time
from webhook.turns import gather_some

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.installation.object_kinds import Key
    from webhook.installation.stored_options import LastTime
    from webhook.kube.client import Client

    Json = dict[str, Any]

# Of an object whose write the API server refuses; an obstacle says why.
Forecast = Result | Literal["unknown"]

_DRY_RUN: Final = {"fieldManager": names.INSTALL_MANAGER, "force": "true", "dryRun": "All"}


class Preparation(NamedTuple):
    """What is written, and what stands in the way.

    objects:    all that is wanted, in the order of the writes
    live:       what there is of these, and of all other objects of an installation, but policies
    last:       the objects of last time, if they are known
    policies:   which policies are written, and which stay
    namespace:  where a pod is tried
    obstacles:  why the installation would stop half way
    kept:       objects that stay as they are, each with the reason
    notes:      messages for the user who installs
    dry_runs:   what the API server answered about the live objects so far
    """

    objects: Mapping[Key, Json]
    live: Mapping[Key, Json]
    last: Mapping[Key, Json] | None
    policies: Plan
    namespace: str
    obstacles: Sequence[str]
    kept: Mapping[Key, str]
    notes: Sequence[str]
    dry_runs: DryRuns

    @property
    def unwanted(self) -> list[Key]:
        """Return what an earlier installation has applied, and this one deletes."""
        return sorted(
            key
            for key, live_object in self.live.items()
            if key not in self.objects and applied(live_object)
        )

    async def losses(self) -> list[str]:
        """Return what the installation takes away or changes. Raises as `read_losses` does."""
        return await read_losses(self.dry_runs, self.live, self.objects, self.last, kept=self.kept)


async def prepare(
    client: Client,
    objects: Mapping[Key, Json],
    *,
    own_policies: bool,
    before: LastTime | None,
    namespace: str,
) -> Preparation:
    """Read the cluster, and plan an installation; the arguments are those of `Installer`.

    Raises ClusterError, and InstallationError if another tool manages the objects, or policies
    cannot be written.
    """
    live = await read_installed(client, objects)
    refuse_managed(live)
    notes: list[str] = []
    if before:
        check_last_time(before, live.get(CONTROLLER))
        objects, notes = keep_narrowing(live, objects, await read_whole(client))
    policies = await plan_policies(client, objects, given=own_policies)
    refuse_managed(await read_live(client, policies.writes))
    trial = await find_namespace(client, objects[CONTROLLER], namespace)
    dry_runs = DryRuns(client)
    obstacles = await find_obstacles(client, dry_runs, live, objects, trial)
    kept = dict(policies.kept)
    both = CONFIG_MAP in objects and CONFIG_MAP in live
    if both and not own_policies and has_own_policies(live[CONFIG_MAP], objects[CONFIG_MAP]):
        kept[CONFIG_MAP] = "its policies are not those that ship (--policies DIR replaces them)"
    return Preparation(
        objects,
        live,
        before.objects if before else None,
        policies,
        trial,
        obstacles,
        kept,
        [*notes, *policies.notes, *(f"{key} stays as it is: {why}" for key, why in kept.items())],
        dry_runs,
    )


async def foretell(client: Client, ready: Preparation) -> dict[Key, Forecast]:
    """Return what an installation would do to each object, in its order, by dry runs.

    An object that is not there is created: nothing is asked about it. Raises ClusterError if the
    API server does not answer.
    """

    async def write(key: Key) -> Forecast:
        try:
            return await _foretell_write(client, ready, key)
        except ClusterError as error:
            if error.status is None:
                raise
            return "unknown"

    policies = ready.policies
    forecast_by_key: dict[Key, Forecast] = {
        key: "created" for key in ready.objects if not of_key(key)
    }
    forecasts: tuple[tuple[Iterable[Key], Forecast], ...] = (
        (policies.writes, "changed"),
        (policies.new, "created"),
        (policies.same, "unchanged"),
        (ready.kept, "kept"),
    )
    for keys, forecast in forecasts:
        forecast_by_key |= dict.fromkeys(keys, forecast)
    asked = [key for key in ready.live if key in forecast_by_key and key not in ready.kept]
    written = await gather_some(CONCURRENT_REQUESTS, write, asked)
    forecast_by_key |= zip(asked, written, strict=True)
    return dict(sorted(forecast_by_key.items())) | dict.fromkeys(ready.unwanted, "deleted")


async def _foretell_write(client: Client, ready: Preparation, key: Key) -> Forecast:
    live, wanted = ready.live[key], ready.objects[key]
    # An installation applies after it has removed what others have added. A dry run of the apply
    # alone counts where there is nothing to remove.
    after = await ready.dry_runs.foresee(key, live, wanted)
    if content(after) == content(live) and key.kind.name not in SHARED:
        after = await client.patch(key.path, wanted, "apply", query=_DRY_RUN)
    return "unchanged" if content(after) == content(live) else "changed"
