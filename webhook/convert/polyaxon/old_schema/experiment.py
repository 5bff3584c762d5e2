"""Convert a document of the old schema to the spec of a Run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon.draft import Converted, non_empty
from webhook.convert.polyaxon.item import (
    NOTHING,
    Refused,
    even_empty,
    given,
    ignored,
    read,
    want_flag,
    want_list,
    want_mapping,
    want_text,
)
from webhook.convert.polyaxon.old_schema.experiment_environment import environment
from webhook.convert.polyaxon.old_schema.experiment_spec import KUBEFLOW, Parts, finite, serving
from webhook.convert.polyaxon.placement import SHM_MOUNT
from webhook.convert.polyaxon.templates import Params, truth
from webhook.policy.yaml_tree import Disputed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from webhook.convert.polyaxon.draft import ConversionOptions, Draft, Notes
    from webhook.convert.polyaxon.item import FieldReader, Item

KINDS: Final = ("experiment", "job", "notebook", "tensorboard")
# Documents that cannot become a Run.
REFUSED: Final = {
    "build": "Fairlead builds no images; kaniko does, in a Run of kind build that you write",
    "group": "a Run is one run; write an experiment for each of the group's",
    "pipeline": "a Run is one run; write one for each operation of the pipeline",
}
_SERVING: Final = ("notebook", "tensorboard")
_CONTAINER: Final = "main"
# Fields that are read before templates are replaced.
_PARAMS: Final = ("params", "declarations", "inputs", "outputs")
_FIELDS: Final[Mapping[str, FieldReader]] = {
    "kind": given,
    **dict.fromkeys(("version", *_PARAMS), ignored),
    "logging": "how much a program logs is its own matter; set it there",
    "tags": "a Run has no tags; give it labels under metadata",
    "project": "a Run has no project; use its namespace",
    "settings": "a Run has none of Polyaxon's settings",
    "hptuning": Refused(
        "a Run is one run; write one for each combination of values, or let Katib search"
    ),
    **dict.fromkeys(("name", "description", "environment", "build", "run"), given),
    **dict.fromkeys(("framework", "backend"), given),
}
_INPUT: Final[Mapping[str, FieldReader]] = {
    "name": want_text,
    "default": even_empty,
    "is_optional": want_flag,
    "is_flag": want_flag,
    **dict.fromkeys(("description", "type", "is_list", "options"), ignored),
}
_NOT_BUILT: Final = (
    "Fairlead builds no images: {image} is used as it is, without the project's code{steps}; "
    "build an image with all of it, and name it with --image"
)
_NONE: Final = (
    "is required: the image of the container; Fairlead builds none, so build it, and name it here "
    "or with --image"
)
_BUILD: Final[Mapping[str, FieldReader]] = {
    "image": given,
    "build_steps": given,
    "lang_env": given,
    "env_vars": want_list,
    **dict.fromkeys(("ref", "dockerfile", "context", "backend", "commit", "branch"), ignored),
    **dict.fromkeys(("nocache", "version", "kind", "logging", "name", "description"), ignored),
    **dict.fromkeys(("tags", "environment", "params", "inputs", "outputs"), ignored),
}
_LANGUAGE: Final = ("LC_ALL", "LANG", "LANGUAGE")
# The variable with all params as JSON.
_VARIABLES: Final = {"params": "POLYAXON_PARAMS", "declarations": "POLYAXON_DECLARATIONS"}
_TWICE: Final = "are params by their older name; keep one of the two"


def convert_old_document(
    document: Item, wanted: ConversionOptions, overrides: Mapping[str, Item], notes: Notes
) -> Converted:
    """Convert the document; fields that a Run cannot have produce warnings."""
    params, env = _read_params(document, overrides, notes)
    rest = {key: value for key, value in document.entries.items() if key not in _PARAMS}
    document = params.bind(document.with_value(rest))
    fields = read(document, notes, _FIELDS, camel=False)
    word = fields.get("kind", NOTHING).as_text
    where = environment(fields.get("environment"), notes, distributable=word == "experiment")
    build, run = built_in_run(fields.get("build"), fields.get("run"))
    picture = image(build, document, notes, instead=wanted.image)
    container = non_empty(
        name=_CONTAINER,
        image=picture.name,
        env=[*env, *picture.env],
        envFrom=where.env_from,
        volumeMounts=[SHM_MOUNT],
    )
    backend = fields.get("backend")
    parts = Parts(document, container, where, run, fields.get("framework"), backend)
    body = serving(word, parts, notes) if word in _SERVING else finite(parts, notes)
    made = Converted(fields.get("name"), description=fields.get("description"))
    made.spec = {"kind": word, **body}
    made.replicas = where.replicas
    if word not in _SERVING and backend is not None and backend.as_text == KUBEFLOW:
        made.backend = backend
    return made


class Image(NamedTuple):
    """The container's image, and the variables that Polyaxon would have built into it."""

    name: Draft
    env: list[Draft]


# Fields of the run section before there was a build section.
_OF_BUILD: Final = {
    "image": "image",
    "steps": "build_steps",
    "build_steps": "build_steps",
    "env_vars": "env_vars",
}


def built_in_run(build: Item | None, run: Item | None) -> tuple[Item | None, Item | None]:
    """Return the build section and the run section; the oldest files have both in one."""
    if build is not None or run is None or not set(_OF_BUILD) & set(run.entries):
        return build, run
    inner = {_OF_BUILD[key]: item for key, item in run.entries.items() if key in _OF_BUILD}
    rest = {key: item for key, item in run.entries.items() if key not in _OF_BUILD}
    return run.with_value(inner), run.with_value(rest)


def image(build: Item | None, document: Item, notes: Notes, *, instead: str) -> Image:
    """Return the image of the build section; `instead` replaces it, without a warning."""
    if build is None:
        if not instead:
            notes.error(document, _NONE, below=("build", "image"))
        return Image(instead, [])
    fields = read(build, notes, _BUILD, camel=False)
    base, env = fields.get("image"), _variables(fields, notes)
    if instead:
        return Image(instead, env)
    if base is None:
        notes.error(build, _NONE, below=("image",))
        return Image(None, env)
    name = want_text(base, notes) or ""
    left_out = " and build_steps" if "buildSteps" in fields else ""
    notes.warning(build, _NOT_BUILT.format(image=name, steps=left_out))
    return Image(base, env)


def _variables(fields: Mapping[str, Any], notes: Notes) -> list[Draft]:
    """Read env_vars, which are pairs, and lang_env, which is the locale."""
    result: list[Draft] = []
    if "langEnv" in fields:
        result += [{"name": name, "value": fields["langEnv"]} for name in _LANGUAGE]
    for pair in fields.get("envVars", ()):
        if len(pair.elements) != 2:
            notes.error(pair, "want a list of two, a name and its value")
            continue
        name, value = (want_text(element, notes) for element in pair.elements)
        result.append({"name": name, "value": pair.elements[1].with_text(value or "")})
    return result


def _read_params(
    document: Item, overrides: Mapping[str, Item], notes: Notes
) -> tuple[Params, list[Draft]]:
    """Return params or declarations, with inputs, and the variable that has all of them.

    overrides: the command line's
    """
    own = {name: each for name, each in document.entries.items() if name in _PARAMS}
    fields = read(document.with_value(own), notes, dict.fromkeys(_PARAMS, given), camel=False)
    written, declarations = fields.get("params"), fields.get("declarations")
    if written is not None and declarations is not None:
        notes.error(declarations, _TWICE, key=True)
    values = {**want_mapping(written or declarations or NOTHING, notes), **overrides}
    params = Params(notes, values)
    for item in want_list(fields.get("inputs", NOTHING), notes):
        params.declare(item, read(item, notes, _INPUT, camel=False))
    params.values = values | {k: v for k, v in params.values.items() if k not in values}
    params.resolve()
    name = _VARIABLES["params" if declarations is None or written is not None else "declarations"]
    text = json.dumps({key: _jsonable(value) for key, value in params.values.items()})
    return params, [{"name": name, "value": text}] if params.values else []


def _jsonable(item: Item) -> Any:
    """Return a value as Polyaxon read it: `yes` is true."""
    if isinstance(item.value, dict):
        return {key: _jsonable(child) for key, child in item.value.items()}
    if isinstance(item.value, tuple):
        return [_jsonable(child) for child in item.value]
    known = truth(item)
    if known is not None or not isinstance(item.value, Disputed):
        return item.value if known is None else known
    return item.text
