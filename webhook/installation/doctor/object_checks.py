"""The check whether all objects of an installation are there, and as they were installed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.applied_by import INSTALL
from webhook.errors import InstallationError, InvalidDocuments
from webhook.installation.choices import as_installed
from webhook.installation.doctor.cluster_state import (
    Finding,
    ReadKind,
    check,
    documents_of,
    not_checked,
    note,
    warning,
)
from webhook.installation.foreign_changes import differences
from webhook.installation.manifests import CONFIG_MAP
from webhook.installation.object_kinds import (
    CONFIGURATION,
    CRD,
    DEPLOYMENT,
    GUARD,
    GUARD_BINDING,
    VALIDATING,
)
from webhook.installation.policy_plan import of_key
from webhook.installation.restoring import SHARED
from webhook.installation.stored_options import read_options
from webhook.policy.added_sources import sources_among
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.installation.doctor.cluster_state import ClusterState
    from webhook.installation.object_kinds import Key

    Json = dict[str, Any]

# Other checks compare these, with what they are for.
_JUDGED: Final = (CRD, CONFIGURATION, VALIDATING, GUARD, GUARD_BINDING)
_MOST_NAMED: Final = 3


def is_compared(key: Key) -> bool:
    """Return whether an object is compared here: policies and their files are an admin's."""
    return key.kind.name not in _JUDGED and not of_key(key) and key != CONFIG_MAP


def installed_objects(
    deployments: Mapping[str, Json], policies: Mapping[str, bytes] | None, *, from_cluster: bool
) -> dict[Key, Json]:
    """Return the objects by the options of last time; nothing if they are not known."""
    # Another check reports documents with errors.
    with suppress(InstallationError, InvalidDocuments):
        options = read_options(deployments.get(names.CONTROLLER))
        documents = documents_of(policies or {}, from_cluster=from_cluster)
        return as_installed(options, sources_among(documents))
    return {}


@check("objects", ReadKind.DEPLOYMENTS, ReadKind.POLICIES, ReadKind.OBJECTS)
def objects(state: ClusterState) -> Iterator[Finding]:
    """Check that all objects of `fairlead install` are there, with what it has written."""
    if {ReadKind.DEPLOYMENTS, ReadKind.POLICIES} & state.unread.keys():
        return
    if not state.wanted or state.applied_by.tool != INSTALL:
        yield not_checked("only what `fairlead install` of this version has installed is known")
        return
    for key in filter(is_compared, state.wanted):
        live = state.stored.get(key)
        if live is None:
            # Of a Deployment and of what could not be read others say so.
            if key.kind.name != DEPLOYMENT and ReadKind.OBJECTS not in state.unread:
                yield warning(f"there is no {key}, which was installed", state.reinstall())
            continue
        shared = key.kind.name in SHARED
        texts = differences(live, state.wanted[key], shared=shared)
        records = [text for text in texts if names.INTERCEPTS in text]
        others = [text for text in texts if text not in records]
        for make, some in ((warning, records), (note if shared else warning, others)):
            if some:
                yield make(
                    f"{key} is not as it was installed: it {first_few(some, _MOST_NAMED)}",
                    f"{state.reinstall()} lists it, and restores it",
                )
