"""The options of an installation, which it stores: an annotation of the controller's Deployment.

Whoever installs may write that object, and it ends with the installation. The options name no file,
token or cluster; of a webhook outside the cluster they have the certificate of its authority.
"""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import Field

import webhook
from webhook import names
from webhook.errors import InstallationError, UnreadableText
from webhook.foreign_text import annotation, parse_object
from webhook.installation.manifests import CONTROLLER, DEFAULT, components, overlays
from webhook.installation.policy_plan import read_sources
from webhook.lenient import Reported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.installation.choices import Choices
    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client
    from webhook.policy.policy_documents import Document

    Json = dict[str, Any]

_SHAPE: Final = 1
_RESET: Final = "--reset installs with the options of the command alone"


class StoredOptions(Reported):
    """The options of the last `fairlead install`.

    shape: of this document; program: the version of Fairlead that wrote it
    intercepts: what is recorded beside it, once more: the kind by the name
    The rest is as in Choices.
    """

    shape: int = _SHAPE
    program: str = ""
    overlays: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    image: str = ""
    url: str = ""
    authority: str = ""
    intercepts: dict[str, str] = Field(default_factory=dict)


class LastTime(NamedTuple):
    """What an installation finds: the options of last time, and the webhook's RunSources.

    objects: what this version renders for those options, if it was this version last time.
    """

    options: StoredOptions | None = None
    sources: Sequence[Document] = ()
    objects: Mapping[Key, Json] = MappingProxyType({})


async def read_last_time(client: Client, *, reset: bool) -> LastTime:
    """Read both; with `reset` not the options. Raises ClusterError and InstallationError."""
    options = None if reset else read_options(await client.find(CONTROLLER.path))
    return LastTime(options, await read_sources(client))


def check_last_time(before: LastTime, deployment: Mapping[str, Any] | None) -> None:
    """Raise InstallationError if the options that were read are not those of the Deployment now."""
    if read_options(deployment) != before.options:
        raise InstallationError(
            "another installation has changed the options of last time since they were read. "
            "Nothing has been changed: give the command again"
        )


def stored_text(choices: Choices, intercepts: Mapping[str, str]) -> str:
    """Return the annotation for these choices, and what is intercepted: the kind by the name."""
    options = StoredOptions(
        program=webhook.__version__,
        overlays=choices.overlays,
        components=choices.components,
        sources=choices.sources,
        image=choices.image,
        url=choices.url,
        authority=choices.authority.decode(),
        intercepts=dict(intercepts),
    )
    given = options.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return json.dumps({"shape": _SHAPE, **given})


def read_options(deployment: Mapping[str, Any] | None) -> StoredOptions | None:
    """Return the options on the controller's Deployment; None without any.

    Raises InstallationError if this version cannot read them, or does not know all of them.
    """
    text = annotation((deployment or {}).get("metadata"), names.INSTALL_OPTIONS)
    if not text:
        return None
    where = f"annotation {names.INSTALL_OPTIONS} of Deployment {names.NAMESPACE}/{names.CONTROLLER}"
    try:
        options = StoredOptions.read(parse_object(text))
    except UnreadableText as error:
        raise InstallationError(f"{where}: {error}. {_RESET}") from None
    unknown = [
        *(overlay for overlay in options.overlays if overlay not in overlays()),
        *(component for component in options.components if component not in components()),
        *(options.model_extra or {}),
    ]
    if unknown or options.shape > _SHAPE:
        what = ", ".join(map(repr, unknown)) or f"shape {options.shape}"
        program = f" {options.program}" if options.program else ""
        raise InstallationError(
            f"{where}: this version does not know {what}. Use the command of the version{program} "
            f"that wrote it; {_RESET}"
        )
    return options


def as_last_time(choices: Choices, options: StoredOptions | None) -> Choices:
    """Return the choices with those of last time: overlays, image and address unless they are
    given, all components and sources.
    """
    before = options or StoredOptions()
    return replace(
        choices,
        overlays=choices.overlays or before.overlays or (DEFAULT,),
        components=tuple(dict.fromkeys((*before.components, *choices.components))),
        sources=tuple(dict.fromkeys((*before.sources, *choices.sources))),
        image=choices.image or before.image,
        url=choices.url or before.url,
        authority=choices.authority if choices.url else before.authority.encode(),
    )


def notes_of(options: StoredOptions | None, image: str) -> Iterator[str]:
    """Yield what holds of last time, and that an image of another version stays."""
    if options is None:
        return
    if shown := flags(options):
        yield f"as last time: {shown} (--reset forgets these options)"
    if options.image and not image and options.program != webhook.__version__:
        yield (
            f"the image stays {options.image}, with which version {options.program} was installed, "
            f"and this command is of version {webhook.__version__}: --image names another"
        )


def flags(options: StoredOptions) -> str:
    """Return the options as the command line has them, without the certificate."""
    overlays = () if options.overlays == (DEFAULT,) else options.overlays
    parts = (
        *(f"--overlay {overlay}" for overlay in overlays),
        *(f"--source {source}" for source in options.sources),
        *(f"--{component}".replace("--backend-", "--backend ") for component in options.components),
        *([f"--image {options.image}"] if options.image else []),
        *([f"--webhook-url {options.url}"] if options.url else []),
    )
    return " ".join(parts)
