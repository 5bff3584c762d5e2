"""The choices for an installation, and the objects that result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import webhook
from webhook import names, validating
from webhook.errors import InstallationError, InvalidDocuments
from webhook.guards import stamp_guard
from webhook.installation.manifests import (
    CONFIG_MAP,
    CONTROLLER,
    DEFAULT,
    FROM_FILES,
    INTERCEPTION,
    JUDGING,
    render,
    shipped_classes,
)
from webhook.installation.object_kinds import GUARD, GUARD_BINDING, containers_of, in_order
from webhook.installation.policy_files import GIVEN, SHIPPED, with_policies
from webhook.installation.policy_plan import marked, of_files, ordered
from webhook.installation.stored_options import as_last_time, stored_text
from webhook.interception import DEFAULT_SOURCES, PATH, record_annotations, webhooks
from webhook.policy import policy_documents
from webhook.policy.added_sources import source_errors, table_of
from webhook.sources import SHIPPED as SHIPPED_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.installation.object_kinds import Key
    from webhook.installation.stored_options import StoredOptions
    from webhook.policy.policy_documents import Document
    from webhook.sources.table import SourceTable

    Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choices:
    """What is installed.

    overlays, components: of the manifests.
    sources: rows of the table of marks beside our own, whose pods are intercepted too.
    image: of all programs; empty: as the manifests have it.
    policies: file names and texts, instead of those that ship; None: those that ship.
    url, authority: for a webhook outside the cluster, its address and the PEM of its authority.
    source_files: more policy files, with the systems of --source FILE.
    stored: documents RunSource that the webhook reads already.
    """

    overlays: tuple[str, ...] = (DEFAULT,)
    components: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    image: str = ""
    policies: Mapping[str, str] | None = None
    url: str = ""
    authority: bytes = b""
    source_files: Mapping[str, str] = field(default_factory=dict)
    stored: Sequence[Document] = ()

    @property
    def from_files(self) -> bool:
        """Whether the policies are files of a ConfigMap, not objects of the cluster."""
        return FROM_FILES in self.components

    @property
    def names_unknown_source(self) -> bool:
        """Whether a source is named that only the cluster may have. Raises as `table` does."""
        return not {row.name for row in self.table().rows}.issuperset(self.sources)

    def table(self) -> SourceTable:
        """Return the table of systems, with those of the policies, of `source_files`, and `stored`
        ones.

        Raises InvalidDocuments.
        """
        parsed = policy_documents.parse(_encoded({**(self.policies or {}), **self.source_files}))
        given = [
            document for document in parsed.documents if document.model.kind == names.SOURCE_KIND
        ]
        given_names = {document.model.name for document in given}
        # A given document replaces the stored one of its name.
        documents = [
            *given,
            *(document for document in self.stored if document.model.name not in given_names),
        ]
        if not documents:
            return SHIPPED_TABLE
        if findings := [*parsed.errors, *source_errors(documents)]:
            raise InvalidDocuments(findings)
        return table_of(documents)


def adapted(choices: Choices) -> dict[Key, Json]:
    """Return the objects with the choices, in the order in which they are applied.

    The controller's Deployment has the choices in an annotation. Raises ValueError for a source
    that is not in the table, and InstallationError for choices that exclude each other.
    """
    objects = render(choices.overlays, choices.components)
    annotations = objects[INTERCEPTION]["metadata"].get("annotations") or {}
    if choices.url and names.INJECTED_BY_CERT_MANAGER in annotations:
        raise InstallationError(
            "--webhook-url excludes --overlay cert-manager: cert-manager would write its own "
            "authority over that of --webhook-ca, and no pod of a run could be created. Give one "
            "of them, and --reset if the other is of last time"
        )
    if choices.image:
        for document in objects.values():
            for container in containers_of(document):
                container["image"] = choices.image
    objects = _intercepting(objects, choices)
    _record(objects, choices)
    if choices.from_files:
        files = objects[CONFIG_MAP]["data"] if choices.policies is None else choices.policies
        files = {**files, **choices.source_files}
        ships = choices.policies is None and not choices.source_files
        made = with_policies(objects[CONFIG_MAP], files, SHIPPED if ships else GIVEN)
        return {**objects, CONFIG_MAP: made}
    policies = ordered(_policies(choices)).items()
    # In an order for clients that apply one by one, such as kubectl: classes before complements.
    return dict(sorted([*objects.items(), *policies], key=lambda pair: pair[0].rank))


def as_installed(options: StoredOptions | None, stored: Sequence[Document]) -> dict[Key, Json]:
    """Return what this version has installed with these options; nothing if another version has.

    stored: documents RunSource that the webhook reads. A source that is gone is left out.
    """
    if not options or options.program != webhook.__version__:
        return {}
    choices = replace(as_last_time(Choices(), options), stored=stored)
    source_names = {row.name for row in choices.table().rows}
    sources = tuple(name for name in choices.sources if name in source_names)
    return adapted(replace(choices, sources=sources))


def _record(objects: Mapping[Key, Json], choices: Choices) -> None:
    """Record on the controller's Deployment the choices, and what these objects intercept."""
    recorded = record_annotations(
        (entry["name"] for entry in objects[INTERCEPTION]["webhooks"]),
        (entry["name"] for entry in objects[JUDGING]["webhooks"]),
        (key.name for key in objects if key.kind.name == GUARD),
    )
    metadata = objects[CONTROLLER]["metadata"]
    others = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(names.INTERCEPTS)
    }
    intercepts = {key.removeprefix(names.INTERCEPTS): kind for key, kind in recorded.items()}
    options = {names.INSTALL_OPTIONS: stored_text(choices, intercepts)}
    metadata["annotations"] = {**others, **recorded, **options}


def is_stamp_guard(key: Key) -> bool:
    """Return whether this is part of the guard against pods without a stamp."""
    return key.kind.name in (GUARD, GUARD_BINDING) and (
        key.name == names.STAMP_GUARD or key.name.startswith(f"{names.STAMP_GUARD}-")
    )


def _intercepting(objects: dict[Key, Json], choices: Choices) -> dict[Key, Json]:
    table = choices.table()
    first = objects[INTERCEPTION]["webhooks"][0]
    entries = webhooks(
        {*DEFAULT_SOURCES, *choices.sources},
        url=choices.url,
        ca_bundle=choices.authority,
        failure_policy=first["failurePolicy"],
        timeout_seconds=first["timeoutSeconds"],
        table=table,
    )
    objects[JUDGING]["webhooks"] = validating.webhooks(
        url=choices.url.removesuffix(PATH).rstrip("/"),
        ca_bundle=choices.authority,
        policies=not choices.from_files,
        table=table,
    )
    return with_entries(objects, entries)


def with_entries(objects: Mapping[Key, Json], entries: Sequence[Json]) -> dict[Key, Json]:
    """Return the objects with these entries for pods, and a guard of the stamp that covers them."""
    made = {**objects, INTERCEPTION: {**objects[INTERCEPTION], "webhooks": [*entries]}}
    guards = [guard for key, guard in objects.items() if is_stamp_guard(key)]
    if not guards:
        return made
    deny = any("Deny" in (guard["spec"].get("validationActions") or ()) for guard in guards)
    others = {key: document for key, document in made.items() if not is_stamp_guard(key)}
    whole = {**others, **in_order(stamp_guard(entries, deny=deny))}
    # Policies keep their order.
    return dict(sorted(whole.items(), key=lambda pair: pair[0].rank))


def _policies(choices: Choices) -> list[Json]:
    if choices.policies is None:
        policies = [marked(capacity_class, SHIPPED) for capacity_class in shipped_classes()]
    else:
        policies = [marked(policy, GIVEN) for policy in of_files(_encoded(choices.policies))]
    return policies + [marked(source, GIVEN) for source in of_files(_encoded(choices.source_files))]


def _encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}
