"""Policies as objects of the cluster: which of them an installation writes, and how.

One module: the plan is read from the cluster, checked against it and written to it.
"""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names
from webhook.cluster_objects.policy_objects import text_of
from webhook.errors import ClusterError, InstallationError, InvalidDocuments
from webhook.installation.apply import Result, apply
from webhook.installation.manifests import CONFIG_MAP, WEBHOOK
from webhook.installation.object_kinds import KINDS, POLICIES, Key, in_order, key, key_of
from webhook.installation.policy_files import (
    GIVEN,
    SHIPPED,
    digest,
    mounted_config_map,
    note_of,
    noted,
    takes_files,
)
from webhook.judgement import set_judgement
from webhook.judgement.set_judgement import load_objects
from webhook.policy import policy_documents
from webhook.policy.team_policies import of_team
from webhook.server.folder import is_policy_file
from webhook.validating import POLICIES as JUDGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.policy.policy_documents import Document, PolicyDocument

    Json = dict[str, Any]
    from webhook.installation.object_kinds import Key
    from webhook.installation.policy_files import Origin

    Objects = Mapping[Key, Json]

_OF_FORM: Final = ("apiVersion", "kind", "spec")


def of_files(files: Mapping[str, bytes]) -> list[Json]:
    """Return the documents of policy files as objects. Raises InvalidDocuments with every error.

    An object has the fields that are written, without default values.
    """
    documents = policy_documents.parse(files).sound()
    of_teams = (
        "is read from files only: an installation does not write policies of teams; remove it"
    )
    if wrong := [d.finding(("kind",), of_teams) for d in documents if of_team(d)]:
        raise InvalidDocuments(wrong)
    return [_object(document.model) for document in documents]


def of_key(key: Key) -> bool:
    """Return whether this is a policy, a class or an exception."""
    return key.kind.name in POLICIES


def marked(wanted: Mapping[str, Any], origin: Origin) -> Json:
    """Return the object with an annotation that shows later whether another client has changed
    it."""
    return noted(wanted, digest([origin, normalized(wanted)]))


def is_still(live: Mapping[str, Any], *origins: Origin) -> bool:
    """Return whether it is as an installation wrote it, with one of these origins."""
    spec = normalized(live)
    return note_of(live) in [digest([origin, spec]) for origin in origins]


def normalized(policy: Mapping[str, Any]) -> object:
    """Return the spec of an object with all default values.

    The API server fills in some of them when it stores an object. A spec that is not valid is
    returned as it is.
    """
    text = orjson.dumps({"metadata": {"name": "any"}, **{k: policy.get(k) for k in _OF_FORM}})
    documents = set_judgement.read_object(str(policy.get("kind")), text).documents
    if not documents:
        return policy.get("spec")
    return documents[0].model.spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def ordered(policies: Iterable[Mapping[str, Any]]) -> dict[Key, Json]:
    """Policies in an order for one-by-one writes: classes before their complements.

    Circular classes never compile; they are ordered by name.
    """
    policy_by_key = {key(policy): dict(policy) for policy in policies}
    names_of = {at.name: at for at in policy_by_key if at.kind.name == names.CLASS_KIND}

    def depth(at: Key) -> int:
        visited: list[Key] = []
        step: Key | None = at
        while step is not None and step not in visited:
            visited.append(step)
            other = (policy_by_key[step].get("spec") or {}).get("complementOf")
            step = names_of.get(str(other)) if step.kind.name == names.CLASS_KIND else None
        return len(visited)

    return {
        at: policy_by_key[at]
        for at in sorted(policy_by_key, key=lambda at: (at.rank, depth(at), at.name))
    }


async def read_policies(client: Client) -> dict[Key, Json]:
    """Return every policy, class and exception of the cluster. Kinds without a definition have
    none."""
    policies: list[Json] = []
    for kind in KINDS:
        if kind.name not in POLICIES:
            continue
        try:
            listing = await client.list(key_of(kind.name, "any").collection, lambda policy: policy)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            continue
        # Items of a list have no apiVersion and kind.
        type_meta = {"apiVersion": kind.api_version, "kind": kind.name}
        policies += [{**policy, **type_meta} for policy in listing.items]
    return in_order(policies)


async def read_sources(client: Client) -> Sequence[Document]:
    """Return the documents RunSource that the webhook reads: objects, or files of its ConfigMap.

    Documents with errors are left out. Raises ClusterError.
    """
    before = await client.find(WEBHOOK.path)
    if before and takes_files(before):
        name = mounted_config_map(before)
        config_map = await client.find(CONFIG_MAP._replace(name=name).path) if name else None
        read = policy_documents.parse(files_of(config_map))
    else:
        texts = texts_of(await read_policies(client))
        source_texts = {
            at: text for at, text in texts.items() if at.startswith(f"{names.RUN_SOURCES}/")
        }
        read = set_judgement.Objects().documents(source_texts)
    return [document for document in read.documents if document.model.kind == names.SOURCE_KIND]


def texts_of(objects: Mapping[Key, Json]) -> dict[str, bytes]:
    """Return the objects as a policy set reads them, by resource and name."""
    return {
        f"{at.kind.resource}/{at.name}": text_of(at.kind.resource, policy)
        for at, policy in objects.items()
    }


def files_of(config_map: Mapping[str, Any] | None) -> dict[str, bytes]:
    """Return the files of a ConfigMap that the webhook reads."""
    files = ((config_map or {}).get("data") or {}).items()
    return {
        name: text.encode()
        for name, text in files
        if is_policy_file(name) and not name.startswith(".")
    }


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


_SHOWN_ERRORS: Final = 5
_KEPT_GIVEN: Final = (
    "it was changed in the cluster since (kubectl replace -f FILE writes yours anyway)"
)
_FAILED: Final = "failed calling webhook"
_REFUSED: Final = f'admission webhook "{JUDGING}" denied the request'


class Plan(NamedTuple):
    """What is written, in this order; what is already right; and what is kept, with the reason.

    new:   those of the writes that do not exist yet
    notes: messages for the user who installs
    """

    writes: Mapping[Key, Json]
    same: Sequence[Key]
    kept: Mapping[Key, str]
    new: Sequence[Key] = ()
    notes: Sequence[str] = ()


def plan_writes(wanted: Iterable[Json], live: Objects) -> Plan:
    """Plan the writes of marked policies. What others have written or changed stays.

    New classes that ship are added only if all policies and classes are shipped ones: a user who
    has written a class may want no other. Exceptions and sources do not count.
    """
    objects = ordered(wanted)
    ships = {at for at, policy in objects.items() if is_still(policy, SHIPPED)}
    same = [at for at in objects if at in live and normalized(live[at]) == normalized(objects[at])]
    others = {
        at: policy
        for at, policy in live.items()
        if at not in same and not is_still(policy, SHIPPED)
    }
    closed = any(at.kind.name in (names.CLASS_KIND, names.POLICY_KIND) for at in others)
    kept = {
        at: "it was changed or written in the cluster" if at in ships else _KEPT_GIVEN
        for at, policy in others.items()
        if at in ships or (at in objects and not is_still(policy, GIVEN))
    }
    writes = {
        at: policy
        for at, policy in objects.items()
        if at not in {*same, *kept} and (at in live or at not in ships or not closed)
    }
    return Plan(writes, same, kept, [at for at in writes if at not in live])


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
        with suppress(InvalidDocuments):
            content_of(live)
            raise InstallationError(
                "with the policies that are in the cluster these do not compile: "
                f"{_some(error.findings)}. Nothing has been changed"
            ) from None


def content_of(objects: Objects) -> str:
    """Return the hash of the set of these objects. Raises InvalidDocuments if they do not
    compile."""
    return load_objects(texts_of(objects)).policies.hash


def _some(problems: Sequence[object]) -> str:
    errors = [problem for problem in problems if getattr(problem, "severity", "error") == "error"]
    more = f", and {len(errors) - _SHOWN_ERRORS} more" if len(errors) > _SHOWN_ERRORS else ""
    return "; ".join(map(str, errors[:_SHOWN_ERRORS])) + more


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
    wanted = [policy for key, policy in objects.items() if of_key(key)]
    live = await read_policies(client)
    before = await client.find(WEBHOOK.path)
    if WEBHOOK not in objects or takes_files(objects[WEBHOOK]):
        if before and not takes_files(before) and live and not given:
            raise InstallationError(
                f"the webhook's policies are {len(live)} objects of the cluster, and files would "
                "take their place: name them by --policies DIR"
            )
        return Plan({}, (), {})
    plan = plan_writes(wanted, live)
    if before and takes_files(before):
        name = mounted_config_map(before)
        where = str(CONFIG_MAP._replace(name=name)) if name else "not in a ConfigMap"
        if not given:
            raise InstallationError(
                f"the webhook's policies are files ({where}), and objects of the cluster would "
                "take their place: give the files, and they become objects: --policies DIR; or "
                "keep them: --policies-from-files"
            )
        note = f"the policies given take the place of files ({where}), which are not read any more"
        plan = plan._replace(notes=(note,))
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
