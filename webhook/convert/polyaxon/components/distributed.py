"""Distributed runtimes: one role of the Run for each kind of replica.

Source of the commands of Ray's pods, which KubeRay would add: KubeRay
(`ray-operator/controllers/ray/common/pod.go`: ray start with the parameters as flags; `job.go`: the
entrypoint is submitted to the head's dashboard). Above 300 lines: Ray is one of the runtimes.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.convert.polyaxon.components.component_pod import Pod, pod
from webhook.convert.polyaxon.draft import non_empty, settled
from webhook.convert.polyaxon.item import Section, plain
from webhook.convert.polyaxon.placement import texts
from webhook.convert.polyaxon.values import want_mapping, want_text, want_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.convert.polyaxon.components.component_pod import SharedSettings
    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import Item
    from webhook.frameworks.framework import PolyaxonRuntime

_GANG: Final = (
    "Fairlead does not schedule pods as a gang; a scheduler that does is named under "
    "environment.schedulerName"
)
_SCALING: Final = "Fairlead does not scale a run; replicas sets the number"
_LEFT_OUT: Final = {
    "scheduling_policy": _GANG,
    "success_policy": "a Run ends with its chief, or with all workers if it has none",
    "enable_dynamic_worker": _SCALING,
    "min_replicas": _SCALING,
    "max_replicas": _SCALING,
    "enable_in_tree_autoscaling": _SCALING,
    "autoscaler_options": _SCALING,
    "metadata": "KubeRay's submission has it; here there is none",
    "ray_version": "the image has the version that it has",
}
_NO_PROGRAM: Final = (
    "nothing is submitted here, so nothing has it; the image is the environment: build one with "
    "all that is needed"
)
_TUNER: Final = "Fairlead tunes nothing; a run of MXNet has a scheduler, servers and workers"
_REFUSED: Final = dict.fromkeys(("tuner", "tuner_tracker", "tuner_server"), _TUNER)
# The operators of Ray and Dask run the program once.
_NOT_AGAIN: Final = "Never"
_ALWAYS: Final = "a replica that succeeded is not started again; it is OnFailure here"
_GROUPS: Final = (
    "a Run has one role worker; make the groups one, or write a Run for each: there are {names}"
)
_MOST: Final = "the most replicas are those of all roles together"
_RENDEZVOUS: Final = "replicas meet by c10d at the master; Fairlead sets the address"
_OPTIONS_LEFT_OUT: Final = {
    "max_replicas": _MOST,
    "rdvz_backend": _RENDEZVOUS,
    "rdvz_port": _RENDEZVOUS,
    "rdvz_host": _RENDEZVOUS,
    "rdvz_id": _RENDEZVOUS,
    "rdvz_conf": _RENDEZVOUS,
    "standalone": _RENDEZVOUS,
    "metrics": "Fairlead does not scale a run",
    "Metrics": "Fairlead does not scale a run",
}
# torchrun accepts names as well as numbers here.
_WORDS: Final = ("auto", "gpu", "cpu")
HEAD: Final = "head"
DRIVER: Final = "driver"
_SHELL: Final = ("/bin/sh", "-c")
_START: Final = {
    HEAD: "ray start --head --port=$RAY_PORT --dashboard-host=0.0.0.0",
    "worker": "ray start --address=$RAY_ADDRESS",
}
# Set above, or by the resources of the container.
_OURS: Final = frozenset({"port", "address", "dashboard-host", "block", "head"})
# RAY_API_SERVER_ADDRESS has the address of the dashboard for the driver.
_WAIT: Final = "until ray job list >/dev/null 2>&1; do sleep 2; done"
_VARIABLES: Final = "env_vars"
_KEPT: Final = ("name", "image", "imagePullPolicy", "volumeMounts")


@dataclass
class _Role:
    """One role: its pod, the number of replicas, and the restart policy."""

    pod: Pod
    count: Item | None = None
    restart_policy: Item | None = None

    def replica(self, rest: dict[str, Draft]) -> dict[str, Draft]:
        """Return the role in the form of a Run; `rest` is its pods' spec without the template."""
        return non_empty(
            count=self.count,
            resources=self.pod.resources,
            environment=self.pod.environment.placement,
            template={"spec": rest} if rest else {},
            restartPolicy=self.restart_policy,
        )


def distributed(
    section: Section, runtime: PolyaxonRuntime, shared: SharedSettings
) -> dict[str, Draft]:
    """Return the part of the spec for a distributed runtime. Does not close the section."""
    notes = section.notes
    section.leave(_LEFT_OUT)
    section.refuse(_REFUSED)
    section.ignore("mode")
    own = options(section, runtime)
    roles = _roles(section, runtime, shared)
    if not roles:
        fields = ", ".join(runtime.fields)
        notes.error(section.item, f"has no replicas; they are under {fields}")
        return {}
    parts = split({name: role.pod.spec(with_resources=False) for name, role in roles.items()})
    template: Draft = {"spec": parts.base} if parts.base else {}
    return {
        "framework": runtime.framework,
        "template": template,
        "replicas": {name: role.replica(parts.rest[name]) for name, role in roles.items()},
        **non_empty(**{runtime.framework: own}),
    }


def _roles(section: Section, runtime: PolyaxonRuntime, shared: SharedSettings) -> dict[str, _Role]:
    notes = section.notes
    roles: dict[str, _Role] = {}
    for name, field in runtime.roles.items():
        item = section.non_empty(field)
        role = None if item is None else _role(item, name, runtime, shared, notes)
        if role is not None:
            roles[name] = role
    groups = section.non_empty(runtime.groups) if runtime.groups else None
    if groups is not None and len(want_mapping(groups, notes)) > 1:
        names = ", ".join(groups.entries)
        notes.error(groups, _GROUPS.format(names=names), key=True)
    elif groups is not None and groups.entries:
        (item,) = groups.entries.values()
        if (role := _role(item, "worker", runtime, shared, notes)) is not None:
            roles["worker"] = role
    entrypoint = section.non_empty("entrypoint") if runtime.framework == "ray" else None
    text = want_text(entrypoint, notes) if entrypoint is not None else None
    if text is None:
        section.leave({"runtime_env": _NO_PROGRAM})
    elif entrypoint is not None and HEAD in roles and roles[HEAD].pod.main:
        head = roles[HEAD].pod
        submitter = driver(head.main, text, section.non_empty("runtime_env"), notes)
        pod_of = Pod(submitter, head.around, [], environment=head.environment)
        roles[DRIVER] = _Role(pod_of, restart_policy=entrypoint.with_text(_NOT_AGAIN))
    return roles


def _role(
    item: Item, name: str, runtime: PolyaxonRuntime, shared: SharedSettings, notes: Notes
) -> _Role | None:
    """Read the replicas of one role; None if there are none."""
    section = Section(item, notes, camel=True)
    made = pod(section, shared)
    count_of = section.non_empty("replicas")
    count = want_whole(count_of, notes) if count_of is not None else 1
    if runtime.framework == "ray":
        params = section.non_empty("ray_start_params")
        if made.main:
            start(name, made.main, params, notes)
        section.leave({"min_replicas": _SCALING, "max_replicas": _SCALING})
    section.close()
    policy = made.environment.restart_policy
    if policy is not None and policy.text == "Always":
        notes.warning(policy, _ALWAYS, key=False)
        policy = policy.with_text("OnFailure")
    if policy is None and name == DRIVER:
        policy = item.with_text(_NOT_AGAIN)
    if count == 0:
        return None
    numbered = None if count_of is None or count is None else count_of.with_value(count)
    return _Role(made, numbered, policy)


class Split(NamedTuple):
    """The common part of several pod specs, and the rest of each.

    base: common to all
    rest: merged into base, it gives the pod's spec again

    Containers are matched by name, as in a strategic merge.
    """

    base: dict[str, Draft]
    rest: dict[str, dict[str, Draft]]


def split(specs: Mapping[str, dict[str, Draft]]) -> Split:
    """Split the specs of pods by role, each with its containers."""
    names = {role: _names(spec) for role, spec in specs.items()}
    if len(set(names.values())) > 1:
        return Split({}, dict(specs))
    base, rest = _split(specs)
    parts = {role: list(_containers(spec)) for role, spec in specs.items()}
    base_containers: list[Draft] = []
    rest_containers: dict[str, list[Draft]] = {role: [] for role in specs}
    for position, name in enumerate(next(iter(names.values()))):
        same, other = _split({role: found[position] for role, found in parts.items()})
        base_containers.append({"name": name, **same})
        for role, fields in other.items():
            if fields:
                rest_containers[role].append({"name": name, **fields})
    base = {"containers": base_containers, **base}
    for role, containers in rest_containers.items():
        if containers:
            rest[role] = {"containers": containers, **rest[role]}
    return Split(base, rest)


def _split(
    maps: Mapping[str, Mapping[str, Draft]],
) -> tuple[dict[str, Draft], dict[str, dict[str, Draft]]]:
    """Return the fields that are equal in all, and the other fields of each."""
    first = next(iter(maps.values()))
    alike = {
        key: value
        for key, value in first.items()
        if key not in ("containers", "name") and _same(key, list(maps.values()))
    }
    rest = {
        role: {k: v for k, v in each.items() if k not in alike and k not in ("containers", "name")}
        for role, each in maps.items()
    }
    return alike, rest


def _same(key: str, maps: Sequence[Mapping[str, Draft]]) -> bool:
    if any(key not in each for each in maps):
        return False
    values = [settled(each[key]) for each in maps]
    return all(value == values[0] for value in values)


def _names(spec: Mapping[str, Draft]) -> tuple[Any, ...]:
    return tuple(settled(container.get("name")) for container in _containers(spec))


def _containers(spec: Mapping[str, Draft]) -> list[Mapping[str, Draft]]:
    found = spec.get("containers")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def options(section: Section, runtime: PolyaxonRuntime) -> dict[str, Draft]:
    """Return the fields of the Run's `pytorch` or `mpi`; other frameworks have none."""
    if runtime.framework == "mpi":
        return non_empty(
            slotsPerWorker=_whole(section.non_empty("slots_per_worker"), section.notes, 1)
        )
    if runtime.framework != "pytorch":
        return {}
    processes = section.non_empty("n_proc_per_node")
    policy = section.non_empty("elastic_policy")
    elastic: dict[str, Draft] = {}
    if policy is not None:
        own = Section(policy, section.notes, camel=True)
        elastic = non_empty(
            minReplicas=_whole(own.non_empty("min_replicas"), section.notes, 1)
            or policy.with_value(1),
            maxRestarts=_whole(own.non_empty("max_restarts"), section.notes, 0),
        )
        processes = processes or own.non_empty("n_proc_per_node")
        own.leave(_OPTIONS_LEFT_OUT)
        own.close()
    return non_empty(nprocPerNode=_processes(processes, section.notes), elastic=elastic)


def _processes(item: Item | None, notes: Notes) -> Item | None:
    if item is not None and item.as_text in _WORDS:
        return item.with_text(item.text)
    return _whole(item, notes, 1)


def _whole(item: Item | None, notes: Notes, least: int) -> Item | None:
    number = None if item is None else want_whole(item, notes, least=least)
    return None if item is None or number is None else item.with_value(number)


def start(role: str, main: dict[str, Draft], params: Item | None, notes: Notes) -> None:
    """Set the command of a head's or a worker's main container, if it has none."""
    if role not in _START or main.get("command") or main.get("args"):
        return
    flags = []
    for name, value in want_mapping(params, notes).items() if params is not None else ():
        text = want_text(value, notes)
        if name not in _OURS and text is not None:
            flags.append(f"--{name}={shlex.quote(text)}")
    main["command"] = list(_SHELL)
    main["args"] = [" ".join([f"exec {_START[role]}", *flags, "--block"])]


def driver(
    head: dict[str, Draft], entrypoint: str, runtime_env: Item | None, notes: Notes
) -> dict[str, Draft]:
    """Return the main container of the replica that submits the program, and ends with it.

    runtime_env: Ray's runtime environment of the program, with variables, as KubeRay submits it
    """
    container: dict[str, Draft] = {name: head[name] for name in _KEPT if name in head}
    container["command"] = list(_SHELL)
    flag = ""
    if runtime_env is not None and (fields := want_mapping(runtime_env, notes)):
        flag = f" --runtime-env-json {shlex.quote(_as_json(fields, notes))}"
    container["args"] = [f"{_WAIT}; exec ray job submit{flag} -- {entrypoint}"]
    return container


def _as_json(runtime_env: Mapping[str, Item], notes: Notes) -> str:
    """Return JSON with variables as text, as Ray requires, and disputed YAML values as written."""
    values = {
        name: plain(texts(item, notes) if name == _VARIABLES else item)
        for name, item in runtime_env.items()
    }
    return json.dumps(values, ensure_ascii=False, default=lambda disputed: disputed.text)
