"""Convert a document of the old schema to the spec of a Run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon.draft import Converted, non_empty
from webhook.convert.polyaxon.item import Section
from webhook.convert.polyaxon.old_schema.experiment_environment import environment
from webhook.convert.polyaxon.old_schema.experiment_spec import KUBEFLOW, Parts, finite, serving
from webhook.convert.polyaxon.placement import SHM_MOUNT
from webhook.convert.polyaxon.templates import Params, bound, resolved, truth
from webhook.convert.polyaxon.values import want_flag, want_list, want_mapping, want_text
from webhook.policy.yaml_tree import Disputed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from webhook.convert.polyaxon.draft import ConversionOptions, Draft, Notes
    from webhook.convert.polyaxon.item import Item

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
_LEFT_OUT: Final = {
    "logging": "how much a program logs is its own matter; set it there",
    "tags": "a Run has no tags; give it labels under metadata",
    "project": "a Run has no project; use its namespace",
    "settings": "a Run has none of Polyaxon's settings",
}
_TUNING: Final = {
    "hptuning": "a Run is one run; write one for each combination of values, or let Katib search"
}
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
# The variable with all params as JSON.
_VARIABLES: Final = {"params": "POLYAXON_PARAMS", "declarations": "POLYAXON_DECLARATIONS"}
_TWICE: Final = "are params by their older name; keep one of the two"
_MISSING: Final = "has no value: give it in params, or on the command line: --param {name}=…"


def convert_old_document(
    document: Item, wanted: ConversionOptions, overrides: Mapping[str, Item], notes: Notes
) -> Converted:
    """Convert the document; fields that a Run cannot have produce warnings."""
    known = read_params(Section(document, notes), overrides)
    rest = {key: value for key, value in document.entries.items() if key not in _PARAMS}
    section = Section(bound(document.with_value(rest), known.params, notes), notes)
    kind = section.non_empty("kind")
    word = "" if kind is None else kind.as_text
    section.ignore("version", *_PARAMS)
    section.leave(_LEFT_OUT)
    section.refuse(_TUNING)
    result = Converted(name=section.non_empty("name"), description=section.non_empty("description"))
    where = environment(section.non_empty("environment"), notes, distributable=word == "experiment")
    build, run = built_in_run(section.non_empty("build"), section.non_empty("run"))
    picture = image(build, section.item, notes, instead=wanted.image)
    container = non_empty(
        name=_CONTAINER,
        image=picture.name,
        env=[*known.env, *picture.env],
        envFrom=where.env_from,
        volumeMounts=[SHM_MOUNT],
    )
    parts = Parts(
        section.item,
        container,
        where,
        run,
        section.non_empty("framework"),
        section.non_empty("backend"),
    )
    section.close()
    body = serving(word, parts, notes) if word in _SERVING else finite(parts, notes)
    result.spec = {"kind": word, **body}
    result.replicas = where.replicas
    if word not in _SERVING and parts.backend is not None and parts.backend.as_text == KUBEFLOW:
        result.backend = parts.backend
    return result


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
    section = Section(build, notes)
    base, steps = section.non_empty("image"), section.non_empty("build_steps")
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
    """Read env_vars, which are pairs, and lang_env, which is the locale."""
    notes = section.notes
    result: list[Draft] = []
    if (language := section.non_empty("lang_env")) is not None:
        result += [{"name": name, "value": language} for name in _LANGUAGE]
    pairs = section.non_empty("env_vars")
    for pair in want_list(pairs, notes) if pairs else ():
        if len(pair.elements) != 2:
            notes.error(pair, "want a list of two, a name and its value")
            continue
        name, value = (want_text(element, notes) for element in pair.elements)
        result.append({"name": name, "value": pair.elements[1].with_text(value or "")})
    return result


class OldParamValues(NamedTuple):
    """The values of params.

    params: for templates
    env:    the variable that has all of them
    """

    params: Params
    env: tuple[Draft, ...] = ()


def read_params(section: Section, overrides: Mapping[str, Item]) -> OldParamValues:
    """Read params or declarations, and inputs. `overrides` are the command line's."""
    notes = section.notes
    params, declarations = section.non_empty("params"), section.non_empty("declarations")
    if params is not None and declarations is not None:
        notes.error(declarations, _TWICE, key=True)
    written = params or declarations
    values = dict(want_mapping(written, notes)) if written else {}
    values.update(overrides)
    flags: set[str] = set()
    missing: dict[str, str] = {}
    inputs = section.non_empty("inputs")
    for item in want_list(inputs, notes) if inputs else ():
        _input(item, values, flags, missing, notes)
    if not values:
        return OldParamValues(Params(elsewhere=missing))
    name = _VARIABLES["declarations" if params is None and declarations is not None else "params"]
    known = resolved(Params(values, missing, frozenset(flags)), notes)
    text = json.dumps({key: _jsonable(value) for key, value in known.values.items()})
    return OldParamValues(known, ({"name": name, "value": text},))


def _input(
    item: Item, values: dict[str, Item], flags: set[str], missing: dict[str, str], notes: Notes
) -> None:
    section = Section(item, notes)
    name_of, default = section.non_empty("name"), section.take("default")
    optional, flag = section.take("is_optional"), section.non_empty("is_flag")
    section.ignore("description", "type", "is_list", "options")
    section.close()
    name = want_text(name_of, notes) if name_of else None
    if name is None:
        if name_of is None:
            notes.error(item, "is required", below=("name",))
        return
    if flag is not None and want_flag(flag, notes):
        flags.add(name)
    if name in values:
        return
    if default is not None:
        values[name] = default
    elif optional is not None and want_flag(optional, notes):
        values[name] = item.with_value(None)
    else:
        missing[name] = ""
        notes.error(item, f"the input {name} {_MISSING.format(name=name)}")


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
