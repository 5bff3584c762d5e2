"""A document of the old schema as the spec of a Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon import shared_memory
from webhook.run.polyaxon.draft import given
from webhook.run.polyaxon.made import Made
from webhook.run.polyaxon.old_schema import params
from webhook.run.polyaxon.old_schema.environment import environment
from webhook.run.polyaxon.old_schema.image import built_in_run, image
from webhook.run.polyaxon.old_schema.spec import Parts, finite, serving
from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.templates import bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.run.polyaxon.asked import Wanted
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

KINDS: Final = ("experiment", "job", "notebook", "tensorboard")
# What was a document there and can be no Run.
REFUSED: Final = {
    "build": "Fairlead builds no images; kaniko does, in a Run of kind build that you write",
    "group": "a Run is one run; write an experiment for each of the group's",
    "pipeline": "a Run is one run; write one for each operation of the pipeline",
}
_SERVING: Final = ("notebook", "tensorboard")
_CONTAINER: Final = "main"
# Read before anything is replaced by them.
_PARAMS: Final = ("params", "declarations", "inputs", "outputs")
_LEFT_OUT: Final = {
    "logging": "how much a program logs is its own matter; set it there",
    "tags": "a Run has no tags; give it labels under metadata",
    "project": "a Run has no project; its namespace says whose it is",
    "settings": "a Run has none of Polyaxon's settings",
}
_TUNING: Final = {
    "hptuning": "a Run is one run; write one for each combination of values, or let Katib search"
}


def made(document: Item, wanted: Wanted, overrides: Mapping[str, Item], notes: Notes) -> Made:
    """Everything of the document that a Run can have."""
    known = params.read(Section(document, notes), overrides)
    rest = {key: value for key, value in document.entries.items() if key not in _PARAMS}
    section = Section(bound(document.holding(rest), known.params, notes), notes)
    kind = section.given("kind")
    word = "" if kind is None else kind.written
    section.ignore("version", *_PARAMS)
    section.leave(_LEFT_OUT)
    section.refuse(_TUNING)
    result = Made(name=section.given("name"), description=section.given("description"))
    where = environment(section.given("environment"), notes, distributable=word == "experiment")
    build, run = built_in_run(section.given("build"), section.given("run"))
    picture = image(build, section.item, notes, instead=wanted.image)
    container = given(
        name=_CONTAINER,
        image=picture.name,
        env=[*known.env, *picture.env],
        envFrom=where.env_from,
        volumeMounts=[shared_memory.MOUNT],
    )
    parts = Parts(
        section.item,
        container,
        where,
        run,
        section.given("framework"),
        section.given("backend"),
    )
    section.close()
    body = serving(word, parts, notes) if word in _SERVING else finite(parts, notes)
    result.spec = {"kind": word, **body}
    result.replicas = where.replicas
    return result
