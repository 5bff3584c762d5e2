"""Convert a document of the old schema to the spec of a Run.

Sources of the frameworks' roles: polyaxon-schemas 0.6 (`specs/frameworks.py`: which tasks there
are) and polyaxon 0.x (`polypod/mxnet.py`: the master schedules; `spawners/horovod_spawner.py`: the
master calls mpirun, and trains too, workers run sshd; `polypod/mpi_job.py`: the operator adds a
launcher, for which the file has no resources). Above 300 lines: a document, part by part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon.draft import Converted, non_empty
from webhook.convert.polyaxon.item import (
    NOTHING,
    Item,
    Refused,
    even_empty,
    given,
    ignored,
    read,
    want_flag,
    want_list,
    want_mapping,
    want_one_of,
    want_text,
    want_texts,
)
from webhook.convert.polyaxon.old_schema import experiment_environment
from webhook.convert.polyaxon.old_schema.experiment_environment import environment
from webhook.convert.polyaxon.pods import SHM_MOUNT, SHM_VOLUME, ordered
from webhook.convert.polyaxon.templates import Params, truth
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.policy.yaml_tree import Disputed
from webhook.run.model import DEFAULT_ROLE
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from webhook.convert.polyaxon.convert import ConversionOptions
    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import FieldReader
    from webhook.convert.polyaxon.old_schema.experiment_environment import Environment

_SERVERS_SHELL: Final = ("/bin/sh", "-c")
_RESTARTS: Final = "was counted for each replica; here it counts for the run as a whole"
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_ALONE: Final = "no framework of Fairlead's is called so and has a single replica; it is left out"
_NO_MASTER: Final = (
    "with backend mpi there is no master, and these applied to no replica; put them under "
    "default_worker"
)
SHELL: Final = ("/bin/bash", "-c")
_SECRETS: Final = (
    "Polyaxon made the notebook's token; here Jupyter makes one, and writes it into its log: "
    "fairlead run logs"
)
_LOGS: Final = (
    "Polyaxon mounted the outputs of its experiments; here the tensorboard reads /logs: mount a "
    "volume there in spec.template of the Run"
)


class Parts(NamedTuple):
    """The parts of a document, read and validated. `container` has no command yet."""

    document: Item
    fields: Mapping[str, Item]
    run: Item
    container: dict[str, Draft]
    environment: Environment
    notes: Notes

    def template(self, container: dict[str, Draft]) -> Draft:
        volumes: list[Draft] = [SHM_VOLUME]
        pod = {"containers": [ordered(container)], "volumes": volumes, **self.environment.pod}
        return {"spec": pod}

    def alone(self, shell: Sequence[str], script: Draft) -> dict[str, Draft]:
        container = {**self.container, "command": list(shell), "args": [script]}
        container |= non_empty(resources=self.environment.resources)
        placed = self.environment.placement
        return non_empty(environment=placed, template=self.template(container))


def finite(parts: Parts) -> dict[str, Draft]:
    """Convert an experiment or a job: it ends, and then its pods are deleted."""
    notes, where = parts.notes, parts.environment
    backend = parts.fields.get("backend", NOTHING)
    if reason := _OTHER_BACKENDS.get(backend.as_text):
        notes.warning(backend, reason)
    elif backend is not NOTHING:
        want_one_of(backend, notes, BACKENDS)
    text = script(parts)
    body: dict[str, Draft] = {}
    if where.replicas is None:
        body = _single(parts, text)
    elif connected := _find_framework(parts, backend.as_text, where.replicas):
        with_ps = bool(connected.ps)
        tasks = experiment_environment.tasks(where.replicas, notes, with_ps=with_ps)
        body = _distributed(connected, parts, tasks, text) if tasks else _single(parts, text)
    return {**body, "backoffLimit": where.max_restarts or 0, "cleanPodPolicy": "All"}


def serving(kind: str, parts: Parts) -> dict[str, Draft]:
    """Convert a notebook or a tensorboard: a Deployment of one pod, until it is deleted."""
    notes, fields = parts.notes, parts.fields
    if parts.environment.max_restarts is not None:
        notes.warning(parts.environment.max_restarts, _DEPLOYED)
    for unused in (parts.run, fields.get("framework", NOTHING)):
        if unused is not NOTHING:
            notes.warning(unused, "only a job or an experiment has one; it is left out")
    port, chosen = 6006, None
    text = f"tensorboard --logdir=/logs --port={port} --host=0.0.0.0"
    if kind == "notebook":
        port = 8888
        if backend := fields.get("backend"):
            chosen = want_one_of(backend, notes, ("notebook", "lab"))
        text = (
            f"jupyter {chosen.as_text if chosen else kind} --no-browser --port={port} "
            "--ip=0.0.0.0 --allow-root --NotebookApp.allow_origin='*' "
            "--NotebookApp.trust_xheaders=True"
        )
    notes.warning(fields["kind"], _SECRETS if kind == "notebook" else _LOGS)
    return {**parts.alone(_SERVERS_SHELL, text), "ports": [{"port": port}]}


def _single(parts: Parts, text: Draft) -> dict[str, Draft]:
    body = parts.alone(SHELL, text)
    framework = parts.fields.get("framework", NOTHING)
    name = framework.as_text
    if name in FRAMEWORKS and DEFAULT_ROLE in ROLES[name].names:
        return {"framework": framework, **body}
    if framework is not NOTHING:
        parts.notes.warning(framework, _ALONE)
    return body


def _distributed(
    framework: Framework, parts: Parts, tasks: Mapping[str, Draft], text: Draft
) -> dict[str, Draft]:
    where, notes = parts.environment, parts.notes
    if where.max_restarts is not None:
        notes.warning(where.max_restarts, _RESTARTS)
    if isinstance(text, Item) and framework.calls:
        text = text.with_text(f"{framework.calls} {text.as_text}")
    command: dict[str, Draft] = {"command": list(SHELL), "args": [text]}
    master = non_empty(resources=where.resources, environment=where.placement)
    if framework.is_bare and master:
        notes.warning(parts.document.entries["environment"], _NO_MASTER)
        master = {}
    common = parts.container
    if framework.launched:
        container = {"name": _CONTAINER, **command}
        master["template"] = {"spec": {"containers": [container]}}
    else:
        common = {**common, **command}
    roles: dict[str, Draft] = {framework.master: master}
    for task, asked in tasks.items():
        roles[framework.ps if task == experiment_environment.PS else task] = asked
    return {
        "framework": framework.name,
        "template": parts.template(common),
        "replicas": roles,
        **non_empty(**{framework.name: framework.options}),
    }


def script(parts: Parts) -> Draft:
    """Return the shell script of `run.cmd`: one command, or several that stop at an error."""
    notes, run = parts.notes, parts.run
    if run is NOTHING:
        what = "is required: the command, under run.cmd"
        notes.error(parts.document, what, below=("run",))
        return None
    cmd: Item | None = read(run, notes, {"cmd": given}, camel=False).get("cmd")
    if cmd is None:
        notes.error(run, "is required: the command", below=("cmd",))
        return None
    return cmd.with_text(" && ".join(map(_in_one_line, want_texts(cmd, notes))))


def _in_one_line(text: str) -> str:
    """Join lines as Polyaxon did: single blanks, without the backslashes at line ends."""
    words = (word.strip("\\") for word in text.split())
    return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Framework:
    """One framework.

    name:     the Run's framework
    master:   the role of the master
    ps:       the role of the parameter servers, or "" if there are none
    options:  the framework's part of the Run
    launched: only the master has a command, which starts the others
    calls:    what Polyaxon put before the command
    is_bare:  the master has no resources and no placement of its own
    """

    name: str
    master: str = "master"
    ps: str = ""
    options: Mapping[str, Draft] = field(default_factory=dict)
    launched: bool = False
    calls: str = ""
    is_bare: bool = False


_MPI: Final = Framework("mpi", "launcher", launched=True, is_bare=True)
DISTRIBUTED: Final[Mapping[str, Framework]] = {
    # TensorFlow's estimators of that time call the first replica master.
    "tensorflow": Framework("tensorflow", ps="ps", options={"masterTaskType": "master"}),
    "pytorch": Framework("pytorch"),
    "mxnet": Framework("mxnet", "scheduler", "server"),
    # One process for each slot of the hosts file, the same number as Polyaxon's.
    "horovod": Framework(
        "mpi",
        "launcher",
        options={"launcherAsWorker": True},
        launched=True,
        calls="mpirun --allow-run-as-root --tag-output",
    ),
}
KUBEFLOW: Final = "kubeflow"
BACKENDS: Final = ("native", KUBEFLOW, "mpi", "other")
_OTHER_BACKENDS: Final = {
    "mpi": "Fairlead runs the replicas itself, without Kubeflow's operator, and sets the same "
    "variables",
    "other": "Fairlead runs this one like any other",
}


def _find_framework(parts: Parts, backend: str, replicas: Item) -> Framework | None:
    """Return the framework that connects the replicas; None after an error."""
    notes, spelt_under = parts.notes, parts.environment.spelt_under
    framework = parts.fields.get("framework", NOTHING)
    name, frameworks = framework.as_text, ", ".join(DISTRIBUTED)
    if backend == "mpi" or spelt_under == "mpi":
        return _MPI
    if spelt_under in DISTRIBUTED:
        if framework is not NOTHING and name != spelt_under:
            notes.error(framework, f"is not the {spelt_under} of environment; keep one of the two")
        return DISTRIBUTED[spelt_under]
    if framework is NOTHING:
        what = f"needs a framework together with environment: one of {frameworks}"
        notes.error(replicas, what, key=True)
    elif name not in DISTRIBUTED:
        hint = guess(name, tuple(DISTRIBUTED))
        notes.error(
            framework, f"{quoted(name)} connects no replicas; one of {frameworks} does{hint}"
        )
    return DISTRIBUTED.get(name)


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
    "is_optional": even_empty,
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


def convert_old_document(
    document: Item, wanted: ConversionOptions, overrides: Mapping[str, Item], notes: Notes
) -> Converted:
    params, env = _read_params(document, overrides, notes)
    rest = {key: value for key, value in document.entries.items() if key not in _PARAMS}
    document = params.bind(document.with_value(rest))
    fields = read(document, notes, _FIELDS, camel=False)
    word = fields["kind"].as_text
    where = environment(
        fields.get("environment", NOTHING), notes, distributable=word == "experiment"
    )
    build, run = built_in_run(fields.get("build", NOTHING), fields.get("run", NOTHING))
    image, variables = _read_build(build, document, notes, instead=wanted.image)
    container = non_empty(
        name=_CONTAINER,
        image=image,
        env=[*env, *variables],
        envFrom=where.env_from,
        volumeMounts=[SHM_MOUNT],
    )
    parts = Parts(document, fields, run, container, where, notes)
    made = Converted(fields.get("name"), description=fields.get("description"))
    made.replicas = where.replicas
    if word in _SERVING:
        made.spec = {"kind": word, **serving(word, parts)}
        return made
    made.spec = {"kind": word, **finite(parts)}
    if (backend := fields.get("backend", NOTHING)).as_text == KUBEFLOW:
        made.backend = backend
    return made


# Fields of the run section before there was a build section.
_OF_BUILD: Final = {
    "image": "image",
    "steps": "build_steps",
    "build_steps": "build_steps",
    "env_vars": "env_vars",
}


def built_in_run(build: Item, run: Item) -> tuple[Item, Item]:
    """Return the build section and the run section; the oldest files have both in one."""
    if build is not NOTHING or not set(_OF_BUILD) & set(run.entries):
        return build, run
    inner = {_OF_BUILD[key]: item for key, item in run.entries.items() if key in _OF_BUILD}
    rest = {key: item for key, item in run.entries.items() if key not in _OF_BUILD}
    return run.with_value(inner), run.with_value(rest)


def _read_build(
    build: Item, document: Item, notes: Notes, *, instead: str
) -> tuple[Draft, list[Draft]]:
    """Return the image and the variables that Polyaxon would have built into it.

    `instead` replaces the image, without a warning.
    """
    fields = read(build, notes, _BUILD, camel=False)
    env: list[Draft] = []
    if "langEnv" in fields:
        env += [{"name": name, "value": fields["langEnv"]} for name in _LANGUAGE]
    for pair in fields.get("envVars", ()):
        if len(pair.elements) != 2:
            notes.error(pair, "want a list of two, a name and its value")
            continue
        name, value = (want_text(element, notes) for element in pair.elements)
        env.append({"name": name, "value": pair.elements[1].with_text(value or "")})
    base = fields.get("image")
    if not instead and build is NOTHING:
        notes.error(document, _NONE, below=("build", "image"))
    elif not instead and base is None:
        notes.error(build, _NONE, below=("image",))
    elif not instead and base is not None:
        left_out = " and build_steps" if "buildSteps" in fields else ""
        image = want_text(base, notes) or ""
        notes.warning(build, _NOT_BUILT.format(image=image, steps=left_out))
    return instead or base, env


def _read_params(
    document: Item, overrides: Mapping[str, Item], notes: Notes
) -> tuple[Params, list[Draft]]:
    """Return params or declarations, with inputs, and the variable that has all of them.

    overrides: the command line's
    """
    param_entries = {name: entry for name, entry in document.entries.items() if name in _PARAMS}
    fields = read(
        document.with_value(param_entries), notes, dict.fromkeys(_PARAMS, given), camel=False
    )
    written, declarations = fields.get("params"), fields.get("declarations")
    if written is not None and declarations is not None:
        notes.error(declarations, "are params by their older name; keep one of the two", key=True)
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
    truth_value = truth(item)
    if truth_value is not None or not isinstance(item.value, Disputed):
        return item.value if truth_value is None else truth_value
    return item.text
