"""The spec of a Run from the parts of a document of the old schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon import shared_memory
from webhook.convert.polyaxon.draft import given
from webhook.convert.polyaxon.old_schema import replicas
from webhook.convert.polyaxon.old_schema.frameworks import Framework, backend_of, distributed
from webhook.convert.polyaxon.pod_order import ordered
from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.values import want_one_of, want_texts
from webhook.run.model import DEFAULT_ROLE
from webhook.run.rendezvous.table import FRAMEWORKS, ROLES

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes
    from webhook.convert.polyaxon.old_schema.environment import Environment

_SERVERS_SHELL: Final = ("/bin/sh", "-c")
_RESTARTS: Final = "was counted for each replica; here it counts for the run as a whole"
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_ALONE: Final = "no framework of Fairlead's is called so and has a single replica; it is left out"
_UNUSED: Final = "only a job or an experiment has one; it is left out"
_NO_MASTER: Final = (
    "with backend mpi there is no master, and these were nobody's; they belong under default_worker"
)
SHELL: Final = ("/bin/bash", "-c")
_NOTEBOOK_PORT: Final = 8888
_TENSORBOARD_PORT: Final = 6006
_BACKENDS: Final = ("notebook", "lab")
_SECRETS: Final = (
    "Polyaxon made the notebook's token; here Jupyter makes one, and writes it into its log: "
    "fairlead run logs"
)
_LOGS: Final = (
    "Polyaxon mounted the outputs of its experiments; here the tensorboard reads /logs: mount a "
    "volume there in spec.template of the Run"
)


class Parts(NamedTuple):
    """What a document says, read and checked part by part. `container` has no command yet."""

    document: Item
    container: dict[str, Draft]
    environment: Environment
    run: Item | None
    framework: Item | None
    backend: Item | None

    def template(self, container: dict[str, Draft]) -> Draft:
        """A pod template with this container."""
        volumes: list[Draft] = [shared_memory.VOLUME]
        pod = {"containers": [container], "volumes": volumes, **self.environment.pod}
        return {"spec": pod}

    def alone(self, command: dict[str, Draft]) -> dict[str, Draft]:
        """The spec's part of a run of one pod."""
        container = {**self.container, **command}
        if self.environment.resources:
            container["resources"] = self.environment.resources
        placed = self.environment.placement
        return given(environment=placed, template=self.template(ordered(container)))


def finite(parts: Parts, notes: Notes) -> dict[str, Draft]:
    """An experiment or a job: it comes to an end, and its pods are cleaned away then."""
    backend = backend_of(parts.backend, notes)
    text = script(parts.run, parts.document, notes)
    where = parts.environment
    if where.replicas is None:
        body = _single(parts, text, notes)
    else:
        connected = distributed(parts.framework, where.spelt_under, backend, where.replicas, notes)
        body = {} if connected is None else _distributed(connected, parts, text, notes)
    return {**body, "backoffLimit": where.max_restarts or 0, "cleanPodPolicy": "All"}


def serving(kind: str, parts: Parts, notes: Notes) -> dict[str, Draft]:
    """A notebook or a tensorboard: a Deployment of one pod, until somebody ends it."""
    if parts.environment.max_restarts is not None:
        notes.warning(parts.environment.max_restarts, _DEPLOYED)
    for unused in (parts.run, parts.framework):
        if unused is not None:
            notes.warning(unused, _UNUSED)
    what = served(kind, parts.document, parts.backend, notes)
    body = parts.alone({"command": list(_SERVERS_SHELL), "args": [what.script]})
    return {**body, "ports": [{"port": what.port}]}


def _single(parts: Parts, text: Draft, notes: Notes) -> dict[str, Draft]:
    body = parts.alone({"command": list(SHELL), "args": [text]})
    framework = parts.framework
    if framework is None:
        return body
    name = framework.written
    if name in FRAMEWORKS and DEFAULT_ROLE in ROLES[name].known:
        return {"framework": framework, **body}
    notes.warning(framework, _ALONE)
    return body


def _distributed(framework: Framework, parts: Parts, text: Draft, notes: Notes) -> dict[str, Draft]:
    """A master, which is always there, and the tasks beside it."""
    where = parts.environment
    with_ps = bool(framework.ps)
    found = where.replicas
    tasks = {} if found is None else replicas.tasks(found, notes, with_ps=with_ps)
    if not tasks:
        return _single(parts, text, notes)
    if where.max_restarts is not None:
        notes.warning(where.max_restarts, _RESTARTS)
    command: dict[str, Draft] = {"command": list(SHELL), "args": [framework.script(text)]}
    master = given(resources=where.resources, environment=where.placement)
    if framework.is_bare and master:
        notes.warning(parts.document.entries["environment"], _NO_MASTER)
        master = {}
    common = parts.container if framework.launched else {**parts.container, **command}
    if framework.launched:
        master["template"] = {
            "spec": {"containers": [{"name": parts.container["name"], **command}]}
        }
    roles: dict[str, Draft] = {framework.master: master}
    for task, asked in tasks.items():
        role = framework.ps if task == replicas.PS else task
        roles[role] = asked.replica()
    body: dict[str, Draft] = {
        "framework": framework.name,
        "template": parts.template(ordered(common)),
        "replicas": roles,
    }
    if framework.options:
        body[framework.name] = dict(framework.options)
    return body


def script(run: Item | None, document: Item, notes: Notes) -> Draft:
    """What the shell is to do: `run.cmd`, one command or several that need each other."""
    if run is None:
        notes.error(document, "is required: the command, under run.cmd", below=("run",))
        return None
    section = Section(run, notes)
    cmd = section.given("cmd")
    section.close()
    if cmd is None:
        notes.error(run, "is required: the command", below=("cmd",))
        return None
    return cmd.saying(" && ".join(_in_one_line(text) for text in want_texts(cmd, notes)))


def _in_one_line(text: str) -> str:
    """As Polyaxon did it: words between single blanks, without the backslashes that join lines."""
    words = (word.strip("\\") for word in text.split())
    return " ".join(word for word in words if word)


class Served(NamedTuple):
    """The shell's script, and the port on which it is reached."""

    script: str
    port: int


def served(kind: str, document: Item, backend: Item | None, notes: Notes) -> Served:
    """The script of a notebook or a tensorboard, with a warning of what was different there."""
    at = document.entries.get("kind", document)
    if kind == "tensorboard":
        notes.warning(at, _LOGS)
        return Served(
            f"tensorboard --logdir=/logs --port={_TENSORBOARD_PORT} --host=0.0.0.0",
            _TENSORBOARD_PORT,
        )
    chosen = "notebook"
    if backend is not None:
        chosen = want_one_of(backend, notes, _BACKENDS) or chosen
    notes.warning(at, _SECRETS)
    return Served(
        f"jupyter {chosen} --no-browser --port={_NOTEBOOK_PORT} --ip=0.0.0.0 --allow-root "
        "--NotebookApp.allow_origin='*' --NotebookApp.trust_xheaders=True",
        _NOTEBOOK_PORT,
    )
