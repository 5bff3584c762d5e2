"""The image of the old schema's build section: what was built there, and is taken as it is here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.values import want_list, want_text

if TYPE_CHECKING:
    from webhook.run.polyaxon.draft import Draft
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

_NOT_BUILT: Final = (
    "Fairlead builds no images: {image} is used as it is, without the project's code{steps}; "
    "build an image with all of it, and name it with --image"
)
_NONE: Final = (
    "is required: the image of the container; Fairlead builds none, so build it, and name it here "
    "or with --image"
)
_MEANINGLESS: Final = (
    "ref",
    "dockerfile",
    "context",
    "backend",
    "commit",
    "branch",
    "nocache",
    "version",
    "kind",
    "logging",
    "name",
    "description",
    "tags",
    "environment",
    "params",
    "inputs",
    "outputs",
)
_LANGUAGE: Final = ("LC_ALL", "LANG", "LANGUAGE")


class Image(NamedTuple):
    """The container's image, and the variables that the image would have had."""

    name: Draft
    env: list[Draft]


# What stood in the run section before there was one for building.
_OF_BUILD: Final = {
    "image": "image",
    "steps": "build_steps",
    "build_steps": "build_steps",
    "env_vars": "env_vars",
}


def built_in_run(build: Item | None, run: Item | None) -> tuple[Item | None, Item | None]:
    """The build section and the run section; the oldest files have both in one."""
    if build is not None or run is None or not set(_OF_BUILD) & set(run.entries):
        return build, run
    inner = {_OF_BUILD[key]: item for key, item in run.entries.items() if key in _OF_BUILD}
    rest = {key: item for key, item in run.entries.items() if key not in _OF_BUILD}
    return run.holding(inner), run.holding(rest)


def image(build: Item | None, document: Item, notes: Notes, *, instead: str) -> Image:
    """What the build section names; `instead` wins, and needs no word about building."""
    if build is None:
        if not instead:
            notes.error(document, _NONE, below=("build", "image"))
        return Image(instead, [])
    section = Section(build, notes)
    base, steps = section.given("image"), section.given("build_steps")
    env = _variables(section)
    section.ignore(*_MEANINGLESS)
    section.close()
    if instead:
        return Image(instead, env)
    if base is None:
        notes.error(build, _NONE, below=("image",))
        return Image(None, env)
    name = want_text(base, notes) or ""
    left_out = " and build_steps" if steps is not None else ""
    notes.warning(build, _NOT_BUILT.format(image=name, steps=left_out))
    return Image(base, env)


def _variables(section: Section) -> list[Draft]:
    """env_vars are pairs, and lang_env is the locale."""
    notes = section.notes
    result: list[Draft] = []
    if (language := section.given("lang_env")) is not None:
        result += [{"name": name, "value": language} for name in _LANGUAGE]
    pairs = section.given("env_vars")
    for pair in want_list(pairs, notes) if pairs else ():
        if len(pair.elements) != 2:
            notes.error(pair, "want a list of two, a name and its value")
            continue
        name, value = (want_text(element, notes) for element in pair.elements)
        result.append({"name": name, "value": pair.elements[1].saying(value or "")})
    return result
