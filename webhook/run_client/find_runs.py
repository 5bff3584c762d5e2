"""Find Runs in a cluster, and their pods."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError, PassOver, WrongUsage
from webhook.run_client.submit import runs_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client
    from webhook.questions.live.live_objects import NoSuchObject

T = TypeVar("T")

# Pods without their label to read, one by one.
MOST_MISSING: Final = 20


class Targets(NamedTuple):
    """Which Runs: of a namespace, or of all if it is empty; of these names or labels, or all."""

    namespace: str
    names: tuple[str, ...]
    selector: str

    @property
    def are_chosen(self) -> bool:
        """Whether names or labels choose some."""
        # The API server takes a selector of spaces for all.
        return bool(self.names or self.selector.strip())


async def find_runs(
    client: Client, targets: Targets, absent: list[NoSuchObject] | None = None
) -> list[dict[str, Any]]:
    """Return the raw Runs, each once. Raises ClusterError, and WrongUsage for an invalid selector.

    `absent` gets an error for each name without a Run. Without it the first one is raised.
    """
    if targets.names:
        return await _fetch_each(client, targets, absent)
    if targets.selector and not targets.selector.strip():
        what = f"the selector {targets.selector!r} is blank, which selects all"
        raise WrongUsage(f"{what}: name labels, or leave it out")
    query = {"labelSelector": targets.selector} if targets.selector else {}
    path = runs_path(targets.namespace)
    try:
        return (await client.list(path, lambda raw: raw, query=query)).items
    except ClusterError as error:
        if not query or error.status != HTTPStatus.BAD_REQUEST:
            raise
        wanted = "labels, such as team=vision,env!=dev or 'env in (dev, test)'"
        what = f"--selector {targets.selector!r}: {error.why}"
        raise WrongUsage(f"{what}; want {wanted}") from None


async def _fetch_each(
    client: Client, targets: Targets, absent: list[NoSuchObject] | None
) -> list[dict[str, Any]]:
    from webhook.questions.live.live_objects import NoSuchObject

    runs = []
    for name in dict.fromkeys(targets.names):
        try:
            runs.append(await fetch_run(client, targets.namespace, name))
        except NoSuchObject as error:
            if absent is None:
                raise
            absent.append(error)
    return runs


def pods_path(namespace: str) -> CollectionPath:
    """Return the pods of a namespace."""
    return CollectionPath("v1", "pods", namespace)


async def list_pods(
    client: Client, namespace: str, run: Mapping[str, Any], keep: Callable[[dict[str, Any]], T]
) -> list[T]:
    """Return the pods of a Run, as they are kept. Raises ClusterError.

    Up to MOST_MISSING of the replicas that have a pod by the status, and none with the label, are
    read by name: whoever may change a pod may take its label.
    """
    # These take time to be imported; --help does not need them.
    from webhook.run.controller_reference import owner_uid

    uid, path = run["metadata"]["uid"], pods_path(namespace)
    missing = _names_with_pods(run)

    def note(raw: dict[str, Any]) -> T:
        missing.discard(raw["metadata"]["name"])
        return keep(raw)

    query = {"labelSelector": f"{names.RUN_UID}={uid}"}
    pods = (await client.list(path, note, query=query)).items
    for name in sorted(missing)[:MOST_MISSING]:
        with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            raw = await client.get(path.path_of(name))
            if owner_uid(raw) == uid:
                pods.append(keep(raw))
    return pods


def _names_with_pods(run: Mapping[str, Any]) -> set[str]:
    """Return the names of the replicas that have a pod by the status; none of another engine."""
    from webhook.run.backends.engines import engine_key
    from webhook.run.model import RunStatus
    from webhook.run.model.intervals import parse_intervals

    status, name = RunStatus.read(run.get("status")), run["metadata"]["name"]
    stopped = status.ended or status.phase == "Suspended"
    return {
        f"{name}-{role}-{index}"
        for role, role_status in status.replicas.items()
        if not engine_key(run.get("spec") or {})
        for index in parse_intervals(
            role_status.creating_indexes if stopped else role_status.active_indexes
        )
    }


async def fetch_run(client: Client, namespace: str, name: str) -> dict[str, Any]:
    """Return the raw Run. Raises ClusterError; if there is none, NoSuchObject with the cure."""
    # Its table of kinds takes time to be imported; --help does not need it.
    from webhook.installation.object_kinds import Kind
    from webhook.questions.live.live_objects import NoSuchObject, find

    kind = Kind(names.API_VERSION, names.RUN_KIND, names.RUNS)
    try:
        return (await find(client, kind, namespace, name, others=True)).value
    except NoSuchObject:
        # A cluster without the definition has no list either, and its error says so.
        with PassOver(HTTPStatus.FORBIDDEN):
            await client.list(kind.path(namespace), lambda _: None)
        raise
