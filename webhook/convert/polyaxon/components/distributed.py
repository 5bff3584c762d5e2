"""Distributed runtimes: one role of the Run for each kind of replica.

Ray's pods get the commands that KubeRay would add (`run/backends/kuberay.py`; the entrypoint is
submitted to the head's dashboard). Above 300 lines: Ray is one of the runtimes.
"""

from __future__ import annotations

import json
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.convert.polyaxon.draft import non_empty, settled
from webhook.convert.polyaxon.item import (
    NOTHING,
    Item,
    Refused,
    given,
    ignored,
    plain,
    read,
    want_mapping,
    want_text,
    want_texts_map,
    want_whole,
)
from webhook.convert.polyaxon.pods import POD, RUNTIME, Pod, pick, pod
from webhook.run.backends import kuberay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import FieldReader
    from webhook.convert.polyaxon.pods import SharedSettings
    from webhook.frameworks.framework import PolyaxonRuntime

_GANG: Final = (
    "Fairlead does not schedule pods as a gang; a scheduler that does is named under "
    "environment.schedulerName"
)
_SCALING: Final = "Fairlead does not scale a run; replicas sets the number"
_TUNER: Final = Refused(
    "Fairlead tunes nothing; a run of MXNet has a scheduler, servers and workers"
)
_NO_PROGRAM: Final = (
    "nothing is submitted here, so nothing has it; the image is the environment: build one with "
    "all that is needed"
)
_FIELDS: Final[Mapping[str, FieldReader]] = {
    **RUNTIME,
    "mode": ignored,
    **dict.fromkeys(("tuner", "tuner_tracker", "tuner_server"), _TUNER),
    "scheduling_policy": _GANG,
    "success_policy": "a Run ends with its chief, or with all workers if it has none",
    "enable_dynamic_worker": _SCALING,
    "min_replicas": _SCALING,
    "max_replicas": _SCALING,
    "enable_in_tree_autoscaling": _SCALING,
    "autoscaler_options": _SCALING,
    "metadata": "KubeRay's submission has it; here there is none",
    "ray_version": "the image has the version that it has",
    "runtime_env": _NO_PROGRAM,
}
# The operators of Ray and Dask run the program once.
_NOT_AGAIN: Final = "Never"
_ALWAYS: Final = "a replica that succeeded is not started again; it is OnFailure here"
_GROUPS: Final = (
    "a Run has one role worker; make the groups one, or write a Run for each: there are {names}"
)
_RENDEZVOUS: Final = "replicas meet by c10d at the master; Fairlead sets the address"
# torchrun accepts names as well as numbers here.
_WORDS: Final = ("auto", "gpu", "cpu")


def _read_processes(item: Item, notes: Notes) -> Item | None:
    is_word = item.as_text in _WORDS
    return item.with_text(item.text) if is_word else want_whole(item, notes, least=1)


_ELASTIC: Final[Mapping[str, FieldReader]] = {
    "min_replicas": partial(want_whole, least=1),
    "max_restarts": want_whole,
    "n_proc_per_node": _read_processes,
    "max_replicas": "the most replicas are those of all roles together",
    "rdvz_backend": _RENDEZVOUS,
    "rdvz_port": _RENDEZVOUS,
    "rdvz_host": _RENDEZVOUS,
    "rdvz_id": _RENDEZVOUS,
    "rdvz_conf": _RENDEZVOUS,
    "standalone": _RENDEZVOUS,
    "metrics": "Fairlead does not scale a run",
    "Metrics": "Fairlead does not scale a run",
}
# By framework: the fields beside its replicas.
_OWN: Final[Mapping[str, Mapping[str, FieldReader]]] = {
    "mpi": {"slots_per_worker": partial(want_whole, least=1)},
    "pytorch": {
        "n_proc_per_node": _read_processes,
        "elastic_policy": lambda item, notes: (item, read(item, notes, _ELASTIC)),
    },
    "ray": {"entrypoint": given, "runtime_env": given},
}
_OWN_OF_ROLE: Final[Mapping[str, Mapping[str, FieldReader]]] = {
    "ray": {
        "ray_start_params": want_mapping,
        "min_replicas": _SCALING,
        "max_replicas": _SCALING,
    }
}
HEAD: Final = "head"
DRIVER: Final = "driver"
_SHELL: Final = ("/bin/sh", "-c")
_KEPT_CONTAINER_FIELDS: Final = ("name", "image", "imagePullPolicy", "volumeMounts")


def distributed(
    run: Item, runtime: PolyaxonRuntime, shared: SharedSettings, notes: Notes
) -> dict[str, Draft]:
    """Return the part of the spec for a distributed runtime, and its cleanPodPolicy."""
    table = {**_FIELDS, **_OWN.get(runtime.framework, {}), **dict.fromkeys(runtime.fields, given)}
    fields = read(run, notes, table)
    roles = _roles(fields, runtime, shared, notes)
    if not roles:
        notes.error(run, f"has no replicas; they are under {', '.join(runtime.fields)}")
        return {}
    parts = split({name: role.spec(with_resources=False) for name, role in roles.items()})
    template: Draft = {"spec": parts.base} if parts.base else {}
    return {
        "framework": runtime.framework,
        "template": template,
        "replicas": {name: role.replica(parts.rest[name]) for name, role in roles.items()},
        **non_empty(**{runtime.framework: _options(fields)}),
        **pick(fields, ("clean_pod_policy",)),
    }


def _options(fields: Mapping[str, Any]) -> dict[str, Draft]:
    """Return the fields of the Run's `pytorch` or `mpi`; other frameworks have none."""
    policy, elastic = fields.get("elasticPolicy", (None, {}))
    return non_empty(
        slotsPerWorker=fields.get("slotsPerWorker"),
        nprocPerNode=fields.get("nProcPerNode") or elastic.get("nProcPerNode"),
        elastic=policy
        and non_empty(
            minReplicas=elastic.get("minReplicas", policy.with_value(1)),
            maxRestarts=elastic.get("maxRestarts"),
        ),
    )


def _roles(
    fields: Mapping[str, Any], runtime: PolyaxonRuntime, shared: SharedSettings, notes: Notes
) -> dict[str, Pod]:
    given_roles = {name: fields[field] for name, field in runtime.roles.items() if field in fields}
    groups = fields.get(runtime.groups, NOTHING)
    if len(want_mapping(groups, notes)) > 1:
        notes.error(groups, _GROUPS.format(names=", ".join(groups.entries)), key=True)
    elif groups.entries:
        (given_roles["worker"],) = groups.entries.values()
    made = {name: _role(item, name, runtime, shared, notes) for name, item in given_roles.items()}
    roles = {name: role for name, role in made.items() if role is not None}
    entrypoint, runtime_env = fields.get("entrypoint"), fields.get("runtimeEnv")
    text = want_text(entrypoint, notes) if entrypoint is not None else None
    if text is None:
        if runtime_env is not None:
            notes.warning(runtime_env, _NO_PROGRAM)
    elif entrypoint is not None and HEAD in roles and roles[HEAD].main:
        head = roles[HEAD]
        submitter = driver(head.main, text, runtime_env, notes)
        policy = entrypoint.with_text(_NOT_AGAIN)
        environment = head.environment._replace(restart_policy=policy)
        roles[DRIVER] = Pod(submitter, head.around, [], environment=environment)
    return roles


def _role(
    item: Item, name: str, runtime: PolyaxonRuntime, shared: SharedSettings, notes: Notes
) -> Pod | None:
    """Read the replicas of one role; None if there are none."""
    table = {**POD, "replicas": want_whole, **_OWN_OF_ROLE.get(runtime.framework, {})}
    fields = read(item, notes, table)
    made = pod(item, fields, shared, notes)
    if runtime.framework == "ray" and made.main:
        start(name, made.main, fields.get("rayStartParams", {}), notes)
    policy = made.environment.restart_policy
    if policy is not None and policy.text == "Always":
        notes.warning(policy, _ALWAYS, key=False)
        policy = policy.with_text("OnFailure")
    if policy is None and name == DRIVER:
        policy = item.with_text(_NOT_AGAIN)
    count = fields.get("replicas")
    if count is not None and count.value == 0:
        return None
    environment = made.environment._replace(restart_policy=policy)
    return made._replace(number=count, environment=environment)


class Split(NamedTuple):
    """The common part of several pod specs, and the rest of each.

    base: common to all
    rest: merged into base, it gives the pod's spec again

    Containers are matched by name, as in a strategic merge.
    """

    base: dict[str, Draft]
    rest: dict[str, dict[str, Draft]]


def split(specs: Mapping[str, Mapping[str, Any]]) -> Split:
    """Split the specs of pods by role, each with its containers."""
    containers = {role: spec["containers"] for role, spec in specs.items()}
    names = [
        [settled(container.get("name")) for container in role_containers]
        for role_containers in containers.values()
    ]
    if any(role_names != names[0] for role_names in names):
        return Split({}, {role: dict(spec) for role, spec in specs.items()})
    base, rest = _split(specs)
    parts = [
        _split(dict(zip(containers, row, strict=True)))
        for row in zip(*containers.values(), strict=True)
    ]
    for role, fields in rest.items():
        if left := [
            {"name": name, **other[role]}
            for name, (_, other) in zip(names[0], parts, strict=True)
            if other[role]
        ]:
            rest[role] = {"containers": left, **fields}
    alike = [{"name": name, **same} for name, (same, _) in zip(names[0], parts, strict=True)]
    return Split({"containers": alike, **base}, rest)


def _split(maps: Mapping[str, Mapping[str, Any]]) -> Split:
    fields_by_role = {
        role: {key: value for key, value in fields.items() if key not in ("containers", "name")}
        for role, fields in maps.items()
    }
    base = {
        key: value
        for key, value in next(iter(fields_by_role.values())).items()
        if all(
            key in fields and settled(fields[key]) == settled(value)
            for fields in fields_by_role.values()
        )
    }
    rest = {
        role: {k: v for k, v in fields.items() if k not in base}
        for role, fields in fields_by_role.items()
    }
    return Split(base, rest)


def start(role: str, main: dict[str, Draft], params: Mapping[str, Item], notes: Notes) -> None:
    """Set the command of a head's or a worker's main container, if it has none."""
    if role == DRIVER or main.get("command") or main.get("args"):
        return
    texts = {name: want_text(value, notes) for name, value in params.items()}
    written = {name: text for name, text in texts.items() if text is not None}
    main |= kuberay.start_command(role, written)


def driver(
    head: dict[str, Draft], entrypoint: str, runtime_env: Item | None, notes: Notes
) -> dict[str, Draft]:
    """Return the main container of the replica that submits the program, and ends with it.

    runtime_env: Ray's runtime environment of the program, with variables, as KubeRay submits it
    """
    container: dict[str, Draft] = {
        name: head[name] for name in _KEPT_CONTAINER_FIELDS if name in head
    }
    container["command"] = list(_SHELL)
    flag = ""
    if runtime_env is not None and (fields := want_mapping(runtime_env, notes)):
        flag = f" --runtime-env-json {shlex.quote(_as_json(fields, notes))}"
    container["args"] = [f"{kuberay.WAIT_FOR_DASHBOARD}; exec ray job submit{flag} -- {entrypoint}"]
    return container


def _as_json(runtime_env: Mapping[str, Item], notes: Notes) -> str:
    """Return JSON with variables as text, as Ray requires, and disputed YAML values as written."""
    values = {
        name: plain(want_texts_map(item, notes) if name == "env_vars" else item)
        for name, item in runtime_env.items()
    }
    return json.dumps(values, ensure_ascii=False, default=lambda disputed: disputed.text)
