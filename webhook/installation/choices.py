"""What somebody chose for an installation, and the objects that come of it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.guards import stamp
from webhook.installation.kinds import CONFIGURATION, GUARD, GUARD_BINDING, in_order
from webhook.installation.policies import with_policies
from webhook.interception import DEFAULT_SOURCES, webhooks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.installation.kinds import Key

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]


@dataclass(frozen=True, slots=True)
class Choices:
    """What differs from the manifests.

    sources: rows of the table of marks beside our own, whose pods are intercepted too.
    image: of both programs; empty: as the manifests have it.
    policies: file names and texts, instead of those that ship; None: those that ship.
    url, authority: where the webhook is, if not behind its Service, and the PEM that vouches for
        it: for one that runs outside of the cluster.
    """

    sources: tuple[str, ...] = ()
    image: str = ""
    policies: Mapping[str, str] | None = None
    url: str = ""
    authority: bytes = b""


def adapted(objects: Iterable[Json], choices: Choices) -> dict[Key, Json]:
    """The objects as they were chosen, in the order in which they are applied.

    Raises ValueError for a source that is in no row of the table.
    """
    found = in_order(deepcopy(list(objects)))
    for key, each in found.items():
        if key.kind.name == "Deployment" and choices.image:
            _set_image(each, choices.image)
        elif key.kind.name == "ConfigMap" and key.name == names.POLICIES_CONFIG_MAP:
            found[key] = with_policies(each, choices.policies)
    return _intercepting(found, choices)


def configuration_of(objects: Objects) -> tuple[Key, Json] | None:
    """The webhook configuration among the objects, if there is one."""
    return next(
        ((key, each) for key, each in objects.items() if key.kind.name == CONFIGURATION), None
    )


def is_stamp_guard(key: Key) -> bool:
    """Whether this is of the guard that judges pods without a stamp."""
    return key.kind.name in (GUARD, GUARD_BINDING) and (
        key.name == names.STAMP_GUARD or key.name.startswith(f"{names.STAMP_GUARD}-")
    )


def _set_image(deployment: Json, image: str) -> None:
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        container["image"] = image


def _intercepting(objects: dict[Key, Json], choices: Choices) -> dict[Key, Json]:
    """The same with the webhook's entries, and the guard's, for the chosen marks and address."""
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
    )
    guards = {key: each for key, each in objects.items() if is_stamp_guard(key)}
    if not guards:
        return objects
    deny = any("Deny" in actions for actions in _actions(guards.values()))
    others = [each for key, each in objects.items() if key not in guards]
    made = stamp.documents(configuration["webhooks"], deny=deny)
    return in_order([*others, *made])


def _actions(guards: Iterable[Json]) -> Iterator[Sequence[str]]:
    for each in guards:
        yield each["spec"].get("validationActions") or ()
