"""The choices for an installation, and the objects that result."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from webhook import names, validating
from webhook.errors import InvalidDocuments
from webhook.guards import stamp_guard
from webhook.installation.manifests import (
    CONFIG_MAP,
    from_files,
    with_backends,
    with_nodes,
    with_policies,
    with_policy_reports,
)
from webhook.installation.object_kinds import (
    CONFIGURATION,
    DEPLOYMENT,
    GUARD,
    GUARD_BINDING,
    VALIDATING,
    in_order,
)
from webhook.installation.policy_objects import GIVEN, SHIPPED, marked, of_files, of_key, ordered
from webhook.interception import DEFAULT_SOURCES, PATH, webhooks
from webhook.policy import policy_documents
from webhook.policy.added_sources import source_errors, table_of
from webhook.sources import SHIPPED as SHIPPED_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.installation.object_kinds import Key
    from webhook.policy.policy_documents import Document
    from webhook.sources.table import SourceTable

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]


@dataclass(frozen=True, slots=True)
class Choices:
    """What differs from the manifests.

    sources: rows of the table of marks beside our own, whose pods are intercepted too.
    image: of both programs; empty: as the manifests have it.
    policies: file names and texts, instead of those that ship; None: those that ship.
    from_files: the policies are files of a ConfigMap, not objects of the cluster.
    nodes: the webhook watches the nodes, and warns about pods that none of them admits.
    backends: engines to which the controller may give Runs.
    reports: the controller writes policy reports.
    source_files: more policy files, with the systems of --source FILE.
    stored: documents RunSource that the webhook reads already.
    url, authority: for a webhook outside the cluster, its address and the PEM of its authority.
    """

    sources: tuple[str, ...] = ()
    image: str = ""
    policies: Mapping[str, str] | None = None
    from_files: bool = False
    nodes: bool = False
    url: str = ""
    authority: bytes = b""
    source_files: Mapping[str, str] = field(default_factory=dict)
    stored: Sequence[Document] = ()
    backends: tuple[str, ...] = ()
    reports: bool = False

    @property
    def names_unknown_source(self) -> bool:
        """Whether a source is named that only the cluster may have. Raises as `table` does."""
        return not {each.name for each in self.table().rows}.issuperset(self.sources)

    def table(self) -> SourceTable:
        """The table of systems, with those of the policies, of `source_files`, and `stored` ones.

        Raises InvalidDocuments.
        """
        files = {**(self.policies or {}), **self.source_files}
        parsed = policy_documents.parse({name: text.encode() for name, text in files.items()})
        given = [each for each in parsed.documents if each.model.kind == names.SOURCE_KIND]
        known = {each.model.name for each in given}
        # A given document replaces the stored one of its name.
        documents = [*given, *(each for each in self.stored if each.model.name not in known)]
        if not documents:
            return SHIPPED_TABLE
        if findings := [*parsed.errors, *source_errors(documents)]:
            raise InvalidDocuments(findings)
        return table_of(documents)


def adapted(objects: Iterable[Json], choices: Choices) -> dict[Key, Json]:
    """The objects with the choices, in the order in which they are applied.

    Raises ValueError for a source that is not in the table.
    """
    found = in_order(deepcopy(list(objects)))
    for key, each in found.items():
        if key.kind.name == DEPLOYMENT and choices.image:
            _set_image(each, choices.image)
    if choices.nodes:
        found = with_nodes(found)
    if choices.reports:
        found = with_policy_reports(found)
    found = with_backends(found, choices.backends)
    table = choices.table()
    found = _with_files(found, choices) if choices.from_files else _with_objects(found, choices)
    return _judging(_intercepting(found, choices, table), choices, table)


def configuration_of(objects: Objects, kind: str = CONFIGURATION) -> tuple[Key, Json] | None:
    """The webhook configuration of this kind among the objects, if there is one."""
    return next(((key, each) for key, each in objects.items() if key.kind.name == kind), None)


def is_stamp_guard(key: Key) -> bool:
    """Whether this is part of the guard against pods without a stamp."""
    return key.kind.name in (GUARD, GUARD_BINDING) and (
        key.name == names.STAMP_GUARD or key.name.startswith(f"{names.STAMP_GUARD}-")
    )


def _with_files(objects: dict[Key, Json], choices: Choices) -> dict[Key, Json]:
    shipped = [each for key, each in objects.items() if of_key(key)]
    found = from_files(objects)
    if CONFIG_MAP in found:
        files = choices.policies
        if files is None:
            files = {"policies.yaml": "---\n".join(map(_text, shipped))}
        files = {**files, **choices.source_files}
        found[CONFIG_MAP] = with_policies(found[CONFIG_MAP], files)
    return found


def _with_objects(objects: dict[Key, Json], choices: Choices) -> dict[Key, Json]:
    if choices.policies is None:
        policies = [marked(each, SHIPPED) for key, each in objects.items() if of_key(key)]
    else:
        texts = {name: text.encode() for name, text in choices.policies.items()}
        policies = [marked(each, GIVEN) for each in of_files(texts)]
    files = {name: text.encode() for name, text in choices.source_files.items()}
    policies += [marked(each, GIVEN) for each in of_files(files)]
    others = [(key, each) for key, each in objects.items() if not of_key(key)]
    # In an order for clients that apply one by one, such as kubectl: classes before complements.
    return dict(sorted([*others, *ordered(policies).items()], key=lambda pair: pair[0].rank))


def _text(policy: Json) -> str:
    return yaml.safe_dump(policy, sort_keys=False)


def _judging(objects: dict[Key, Json], choices: Choices, table: SourceTable) -> dict[Key, Json]:
    """The objects with the validating webhooks at the chosen address."""
    found = configuration_of(objects, VALIDATING)
    if found is None or not (choices.url or table is not SHIPPED_TABLE):
        return objects
    _, configuration = found
    configuration["webhooks"] = validating.webhooks(
        url=choices.url.removesuffix(PATH).rstrip("/"),
        ca_bundle=choices.authority,
        policies=not choices.from_files,
        table=table,
    )
    return objects


def _set_image(deployment: Json, image: str) -> None:
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        container["image"] = image


def _intercepting(
    objects: dict[Key, Json], choices: Choices, table: SourceTable
) -> dict[Key, Json]:
    """The objects with the webhook's and the guard's entries for the chosen marks and address."""
    found = configuration_of(objects)
    if found is None or not (choices.sources or choices.url):
        return objects
    _, configuration = found
    first = configuration["webhooks"][0]
    configuration["webhooks"] = webhooks(
        {*DEFAULT_SOURCES, *choices.sources},
        url=choices.url,
        ca_bundle=choices.authority,
        failure_policy=first["failurePolicy"],
        timeout_seconds=first["timeoutSeconds"],
        table=table,
    )
    guards = {key: each for key, each in objects.items() if is_stamp_guard(key)}
    if not guards:
        return objects
    deny = any("Deny" in actions for actions in _actions(guards.values()))
    others = [each for key, each in objects.items() if key not in guards]
    made = stamp_guard(configuration["webhooks"], deny=deny)
    return in_order([*others, *made])


def _actions(guards: Iterable[Json]) -> Iterator[Sequence[str]]:
    for each in guards:
        yield each["spec"].get("validationActions") or ()
