"""Try a Run again that is over: a new Run of the same spec, whose pods are numbered on."""

from __future__ import annotations

import base64
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.applied_by import TRACKING
from webhook.errors import ClusterError, InvalidRun, UnreadableInput
from webhook.foreign_text import annotation, whole_number
from webhook.run_client.find_runs import Targets, fetch_run, find_runs
from webhook.run_client.submit import code_name, run_path, submit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.kube.client import Client

    Json = dict[str, Any]

# How often another Run may have the name, or another client try the same Run again, meanwhile.
_MOST_LOOKS: Final = 20


async def retry(client: Client, namespace: str, name: str) -> Json:
    """Create the next try of a Run that is over, and return it.

    It is called NAME-2, or by the next number that no Run has; a long name is cut. Its pods have a
    greater FAIRLEAD_ATTEMPT than those of all tries before, so they find the checkpoints. Code that
    was mounted by `run create --code` is copied, because it goes with the Run before.
    Raises FairleadError, also for a Run that lives, or whose later try does.
    """
    taken = 1
    for _ in range(_MOST_LOOKS):
        before = await fetch_run(client, namespace, name)
        tries = await _tries(client, before)
        _check_over(name, tries)
        code = await _code(client, before)
        taken = max(taken, *(_number(attempt) for attempt in tries))
        raw = _next(before, tries, taken + 1, code)
        try:
            return await submit(client, raw, namespace, code)
        except ClusterError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        taken += 1
    first = f"{_stem(before)}-{taken - _MOST_LOOKS + 1}"
    what = f"all names from {first} to {_stem(before)}-{taken} are taken"
    raise UnreadableInput([f"run {name}: {what}; delete Runs that are over"])


async def _tries(client: Client, before: Json) -> list[Json]:
    """Return the Run, and all others that are tries of the same first one."""
    namespace, stem = before["metadata"]["namespace"], _stem(before)
    labelled = Targets(namespace, (), f"{names.FIRST_TRY}={stem}")
    first = await client.find(run_path(namespace, stem))
    runs = (before, *filter(None, (first,)), *await find_runs(client, labelled))
    return [*{run["metadata"]["name"]: run for run in runs}.values()]


def _stem(run: Json) -> str:
    """Return the name of the first try, to which the others add a number."""
    metadata = run["metadata"]
    label: str = (metadata.get("labels") or {}).get(names.FIRST_TRY) or metadata["name"]
    return label


def _number(run: Json) -> int:
    """Return the number at the end of the name of a try; 1 for the first."""
    name = run["metadata"]["name"]
    return 1 if name == _stem(run) else whole_number(name.rpartition("-")[2]) or 1


def _check_over(name: str, tries: Iterable[Json]) -> None:
    """Raise UnreadableInput with the cure if one of the tries lives; the Run is the first of them.

    Two of them would write the same checkpoints.
    """
    from webhook.run.model import RunStatus

    for attempt in tries:
        metadata, status = attempt["metadata"], RunStatus.read(attempt.get("status"))
        if status.ended:
            continue
        attempt_name, place = metadata["name"], f"{metadata['name']} -n {metadata['namespace']}"
        if metadata.get("deletionTimestamp"):
            state, cure = "being deleted", f"wait: kubectl wait --for=delete run/{place}"
        elif attempt["spec"].get("suspend"):
            state, cure = "suspended", f"let it go on: fairlead run resume {place}"
        else:
            state = f"{status.phase} ({status.message})" if status.message else status.phase
            cure = f"wait for its end (fairlead run wait {place}), or delete it"
        what = (
            f"run {name} is"
            if attempt_name == name
            else f"run {name} is tried again already: {attempt_name} is"
        )
        raise UnreadableInput([f"{what} {state}, not over; {cure}"])


async def _code(client: Client, before: Json) -> dict[str, bytes]:
    """Return the files of the ConfigMap that `run create --code` made, which the Run owns.

    Empty if there is none. One that the Run does not own stays, so that both may mount it.
    Raises UnreadableInput if it is gone.
    """
    metadata = before["metadata"]
    name, wanted = metadata["name"], code_name(metadata["name"])
    source = next(filter(None, (_held(volume, wanted) for volume in _volumes(before))), None)
    if source is None:
        return {}
    path = CollectionPath("v1", "configmaps", metadata["namespace"]).path_of(wanted)
    config_map = await client.find(path)
    owners = (config_map or {"metadata": {}})["metadata"].get("ownerReferences") or ()
    if config_map and metadata["uid"] not in {owner.get("uid") for owner in owners}:
        return {}
    data = (config_map or {}).get("binaryData") or {}
    items = {item["path"]: item["key"] for item in source.get("items") or ()}
    if not config_map or not all(key in data for key in items.values()):
        what = f"its code was in ConfigMap {wanted}, which has lost it"
        cure = "give it again: fairlead run create --code"
        raise UnreadableInput([f"run {name}: {what}; {cure}"])
    return {path: base64.b64decode(data[key]) for path, key in items.items()}


def _volumes(run: Json) -> list[Json]:
    pod: Json = run["spec"]["template"].get("spec") or {}
    return pod.get("volumes") or []


def _held(volume: Json, name: str) -> Json | None:
    """Return the source of a volume if it is the ConfigMap of this name."""
    source: Json = volume.get("configMap") or {}
    return source if source.get("name") == name else None


def _next(
    before: Json,
    tries: Iterable[Json],
    number: int,
    code: Mapping[str, bytes],
) -> Json:
    """Return the next try, with this number. Raises InvalidRun with all problems."""
    from webhook.run.model import SERVING
    from webhook.run.new_run import checked

    stem, suffix, spec = _stem(before), f"-{number}", before["spec"]
    marks = {names.RETRY_OF: before["metadata"]["name"]}
    if spec.get("backend", "native") == "native" and spec.get("kind") not in SERVING:
        # No other pods have a number.
        marks[names.FIRST_ATTEMPT] = str(_first_attempt(tries))
    # The name of the first try is valid, so at most the length of the number is too much.
    for length in range(len(stem), max(0, len(stem) - len(suffix) - 1), -1):
        raw = _again(before, stem[:length].rstrip("-") + suffix, marks, code)
        try:
            checked(raw, before["metadata"]["namespace"])
        except InvalidRun as error:
            problems = error
            if not any(problem.startswith("metadata.name") for problem in error.problems):
                raise
        else:
            return raw
    raise problems


def _again(before: Json, name: str, marks: Mapping[str, str], code: Mapping[str, bytes]) -> Json:
    """Return the Run under another name, with the annotations of a retry."""
    metadata = before["metadata"]
    labels, annotations = (
        {
            key: text
            for key, text in (metadata.get(field) or {}).items()
            if not key.startswith(TRACKING)
        }
        for field in ("labels", "annotations")
    )
    spec = {key: value for key, value in before["spec"].items() if key != "suspend"}
    if code:
        held = code_name(metadata["name"])
        volumes = [
            {**volume, "configMap": {**source, "name": code_name(name)}}
            if (source := _held(volume, held))
            else volume
            for volume in _volumes(before)
        ]
        pod = {**spec["template"]["spec"], "volumes": volumes}
        spec["template"] = {**spec["template"], "spec": pod}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {
            "name": name,
            "labels": {**labels, names.FIRST_TRY: _stem(before)},
            "annotations": {**annotations, **marks},
        },
        "spec": spec,
    }


def _first_attempt(tries: Iterable[Json]) -> int:
    """Return a number above those of all pods of the tries."""
    from webhook.run.model import RunStatus
    from webhook.run.restarts import pod_number

    numbers = []
    for attempt in tries:
        written = whole_number(annotation(attempt["metadata"], names.FIRST_ATTEMPT)) or 0
        roles = RunStatus.read(attempt.get("status")).replicas.values()
        numbers.append(max((pod_number(role) for role in roles), default=written))
    return max(numbers) + 1
