"""Plan a Run: the manifests of all its objects."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook import names
from webhook.errors import InvalidRun
from webhook.frameworks.framework import SharedConfig
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.table import render_env, render_shared
from webhook.policy.findings import path_text
from webhook.run import manifests
from webhook.run.environment import bottom, placed, upon
from webhook.run.observed import Needs
from webhook.run.pod_template_cache import make_template_cache, with_log_as_message
from webhook.run.reading import size_problem
from webhook.run.template import controller_annotations, merged, template_problems
from webhook.strict import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.frameworks.framework import ReplicaEnv
    from webhook.placement.schema.placement import PlacementModel
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.run.environment import Placement
    from webhook.run.model import Resources, Run
    from webhook.run.pod_template_cache import PodTemplateCache

_TEMPLATE: Final[Path] = ("spec", "template")


@dataclass(frozen=True, slots=True)
class Draft:
    """The merged definition of equal replicas: of a role (`index` is None), or of one override.

    All drafts of a role share its template and its placement, because a run may have a thousand
    drafts and a template ten thousand fields.

    below: the role's placement; environment: the override of the one replica.
    at: the position of the main container; resources: its resources, None for the template's.
    written: the template without what the controller adds to containers.
    """

    role: str
    index: int | None
    written: JsonObject
    template: JsonObject
    below: Placement
    environment: PlacementModel | None
    resources: JsonObject | None
    at: int

    @property
    def placement(self) -> Placement:
        """The placement with all environments applied; computed at each access."""
        return upon(self.below, (self.environment,))

    @property
    def container(self) -> JsonObject:
        """The main container from the template."""
        container: JsonObject = self.template["spec"]["containers"][self.at]
        return container

    @property
    def requested(self) -> Mapping[str, object] | None:
        """The resources of the main container."""
        if self.resources is not None:
            return self.resources
        resources = self.container.get("resources")
        return resources if isinstance(resources, dict) else None


def drafts(run: Run) -> tuple[list[Draft], list[str]]:
    """Return the drafts of every role and override, in the framework's order, and problems.

    A role with an invalid template has no draft.
    """
    run_drafts: list[Draft] = []
    serving = run.spec.serving
    problems = [*_size_problems(run), *_environment_problems(run)]
    wrong = [*template_problems(run.spec.template, _TEMPLATE, serving=serving)]
    problems += wrong
    without: dict[str, list[JsonObject]] = {}
    for role, replica in run.spec.roles.items():
        over = replica.template or {}
        at: Path = ("spec", "replicas", role, "template") if replica.template else _TEMPLATE
        role_problems = [*template_problems(over, at, serving=serving)]
        problems += role_problems
        template = merged(merged({}, run.spec.template), over)
        containers = _containers(template)
        lacking = _lacking(containers, at)
        problems += [line for line in lacking if line not in problems]
        if run.spec.main_container not in (None, *(container["name"] for container in containers)):
            without[role] = containers
        if wrong or role_problems or lacking or role in without:
            continue
        written, template = template, with_log_as_message(template)
        main = run.spec.main_container or containers[0]["name"]
        names_in_order = [container["name"] for container in template["spec"]["containers"]]
        position = names_in_order.index(main)
        resources = _json(replica.resources)
        placement = upon(bottom(template), (run.spec.environment, replica.environment))
        run_drafts.append(
            Draft(role, None, written, template, placement, None, resources, position)
        )
        for entry in replica.by_index or ():
            special = resources if entry.resources is None else _json(entry.resources)
            run_drafts.append(
                Draft(
                    role,
                    entry.index,
                    written,
                    template,
                    placement,
                    entry.environment,
                    special,
                    position,
                )
            )
    if without:
        problems.append(_no_main(run.spec.main_container, without))
    return run_drafts, problems


def _size_problems(run: Run) -> Iterator[str]:
    whole = run.model_dump(mode="json", by_alias=True, exclude_unset=True)
    # A template that is nested too deeply has that problem.
    with suppress(orjson.JSONEncodeError):
        if problem := size_problem(whole):
            yield problem


def _json(resources: Resources | None) -> JsonObject | None:
    if resources is None:
        return None
    return resources.model_dump(by_alias=True, exclude_none=True)


def _containers(template: JsonObject) -> list[JsonObject]:
    """Return the containers of a merged template that have a valid shape."""
    spec = template.get("spec", {})
    containers = spec.get("containers") if isinstance(spec, dict) else None
    objects = containers if isinstance(containers, list) else []
    return [
        item for item in objects if isinstance(item, dict) and isinstance(item.get("name"), str)
    ]


def _lacking(containers: list[JsonObject], at: Path) -> list[str]:
    """Return problems with containers of a merged template: none at all, or no image."""
    where = path_text((*at, "spec", "containers"))
    if not containers:
        return [f"{where}: there is no container; give one, with a name and an image"]
    return [
        f"{where}: container {quoted(container['name'])} has no image; give it one"
        for container in containers
        if not container.get("image")
    ]


def _no_main(wanted: str | None, without: Mapping[str, list[JsonObject]]) -> str:
    have = "has" if len(without) == 1 else "have"
    container_names = dict.fromkeys(
        container["name"] for some in without.values() for container in some
    )
    return (
        f"spec.mainContainer: {', '.join(without)} {have} no container {quoted(wanted)}; "
        f"want one of {', '.join(container_names) or 'those of the template'}"
    )


def _environment_problems(run: Run) -> Iterator[str]:
    """Yield a problem for each capacity annotation, which would conflict with `capacity`, and for
    each annotation that only the controller sets."""
    for at, environment in _environments(run):
        annotations = (environment and environment.annotations) or {}
        yield from controller_annotations(annotations, at)
        if names.CAPACITY in annotations:
            path = path_text((*at, "annotations", names.CAPACITY))
            yield f"{path}: an environment asks by its field capacity; write it there"


def _environments(run: Run) -> Iterator[tuple[Path, PlacementModel | None]]:
    yield ("spec", "environment"), run.spec.environment
    for role, replica in run.spec.roles.items():
        at: Path = ("spec", "replicas", role)
        yield (*at, "environment"), replica.environment
        for position, entry in enumerate(replica.by_index or ()):
            yield (*at, "byIndex", position, "environment"), entry.environment


@dataclass(frozen=True)
class Plan:
    """The manifests of one generation of a Run. They share parts and must not be modified.

    shared: the configuration that all replicas share, apart from variables.
    needs: what the run needs besides its pods.
    templates: by role; special: by role and index, for replicas with overrides. Only the drafts of
    these are kept, because a Run may have a thousand; the rest is computed with each pod.
    """

    run: Run
    gang: Gang
    shared: SharedConfig
    needs: Needs
    templates: Mapping[str, PodTemplateCache]
    special: Mapping[tuple[str, int], Draft]
    ports: tuple[JsonObject, ...] = ()

    @property
    def main_container(self) -> str:
        """The main container of the first role; each pod's annotation has its own."""
        name: str = next(iter(self.templates.values())).main["name"]
        return name

    def pod(
        self,
        role: str,
        index: int,
        attempt: int,
        history: str = "",
        avoid: Sequence[str] = (),
        restarts: int = 0,
    ) -> JsonObject:
        """Return the v1.Pod of one replica; `avoid` are nodes on which it may not run."""
        name = self.gang.pod(role, index)
        env = self.replica_env(role, index, attempt + restarts)
        pod = self.template_cache(role, index).pod(name, index, attempt, env)
        if history:
            pod["metadata"]["annotations"][names.HISTORY] = history
        if avoid:
            pod["metadata"]["annotations"][names.AVOID_NODES] = ",".join(avoid)
        return pod

    def placed_spec(self, role: str, index: int) -> Mapping[str, Any]:
        """Return the fields of a replica's pod that its author wrote about nodes, among others."""
        draft = self.special.get((role, index))
        return placed(draft.placement).spec if draft else self.templates[role].spec

    def template_cache(self, role: str, index: int) -> PodTemplateCache:
        """Return the parts that the replica shares with equal replicas."""
        if draft := self.special.get((role, index)):
            return make_template_cache(self.run, draft, self.shared)
        return self.templates[role]

    def replica_env(self, role: str, index: int, number: int | None = None) -> ReplicaEnv:
        """Return the variables by which the replica finds the others, and knows earlier pods.

        number: of attempts and restarts of the role, counted or not, when the pod is created. Each
        later pod of the replica has a greater one. Default: that of the first pod.
        """
        replica_env = render_env(self.gang, role, index)
        if self.run.spec.serving:
            return replica_env
        text = str(self.run.first_attempt if number is None else number)
        return replace(replica_env, env={**replica_env.env, names.ATTEMPT_VARIABLE: text})

    def service(self, *, closed: bool = False) -> JsonObject:
        """Return the run's v1.Service: headless, or in front of a Deployment.

        `closed`: a headless Service that selects no pod yet, while a large run starts.
        """
        if self.run.spec.serving:
            return manifests.service(self.run, self.ports)
        return manifests.headless_service(self.run, self.gang, closed=closed)

    def config_map(self) -> JsonObject | None:
        """Return the v1.ConfigMap of the shared files; None if there are none."""
        return manifests.config_map(self.run, self.shared) if self.needs.config_map else None

    @property
    def keys_secret(self) -> str | None:
        """The name of the Secret of SSH keys; None if the run needs none."""
        return manifests.secret_name(self.run) if self.needs.keys else None

    def keys_secret_manifest(self, name: str, private: str, public: str) -> JsonObject:
        """Return the v1.Secret; `private` is PEM text, `public` an authorized_keys line."""
        return manifests.keys_secret(self.run, name, private, public)

    def deployment(self) -> JsonObject:
        """Return the apps/v1.Deployment of a notebook, a tensorboard or a service."""
        return manifests.deployment(self.run, next(iter(self.templates.values())), self.ports)


def plan(run: Run, *, cluster_domain: str = "") -> Plan:
    """Return the plan of a run. Raises InvalidRun with all reasons why no pods can be created.

    A delegated run has no plan: its engine creates the pods.
    """
    if run.spec.delegated:
        raise InvalidRun([_delegated(run.spec.backend)])
    run_drafts, problems = drafts(run)
    ports: list[JsonObject] = []
    if run_drafts and run.spec.serving:
        ports = manifests.service_ports(run, run_drafts[0].container)
        if not ports:
            problems.append(
                f"spec.ports: a {run.spec.kind} needs a port to be reached by; give it here, or in "
                f"the ports of container {run_drafts[0].container['name']}"
            )
    gang = make_gang(run, run_drafts, cluster_domain)
    shared = SharedConfig()
    try:
        shared = render_shared(gang)
    except InvalidRun as error:
        problems += error.problems
    if problems:
        raise InvalidRun(problems)
    return Plan(
        run,
        gang,
        shared,
        Needs(
            config_map=bool(shared.files),
            keys=bool(shared.ssh_keys_at),
            address=manifests.address(run, ports, cluster_domain) if ports else None,
        ),
        {
            draft.role: make_template_cache(run, draft, shared)
            for draft in run_drafts
            if draft.index is None
        },
        {(draft.role, draft.index): draft for draft in run_drafts if draft.index is not None},
        tuple(ports),
    )


def _delegated(backend: str) -> str:
    return (
        f"spec.backend: another engine creates the pods of backend {backend}; `fairlead preview "
        "-o pods` shows them"
    )


def make_gang(run: Run, run_drafts: list[Draft], cluster_domain: str) -> Gang:
    """Return the replicas of a run as its framework sees them."""
    roles = run.spec.roles
    devices = {}
    for role, replica in roles.items():
        drafts_of_role = [draft for draft in run_drafts if draft.role == role]
        usual = gpus(drafts_of_role[0].requested) if drafts_of_role else 0
        gpus_by_index = {
            draft.index: gpus(draft.requested)
            for draft in drafts_of_role
            if draft.resources is not drafts_of_role[0].resources
        }
        devices[role] = tuple(gpus_by_index.get(index, usual) for index in range(replica.count))
    first = run_drafts[0] if run_drafts else None
    spec = first.template["spec"] if first else {}
    return Gang(
        run=run.name,
        namespace=run.namespace,
        framework=run.spec.framework,
        counts={role: replica.count for role, replica in roles.items()},
        options=run.spec.settings,
        cluster_domain=cluster_domain,
        devices=devices,
        labels={**(first.placement.get("labels", {}) if first else {}), **manifests.labels(run)},
        service_account=spec.get("serviceAccountName") or "default",
    )


def gpus(resources: Mapping[str, Any] | None) -> int:
    """Return the number of GPUs of a container: nvidia.com/gpu, amd.com/gpu and other */gpu.

    Extended resources are whole numbers, and limits equal requests if both are given
    (https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus). Other values count as zero.
    """
    limits, requests = ((resources or {}).get(part) for part in ("limits", "requests"))
    quantities = {
        **(requests if isinstance(requests, dict) else {}),
        **(limits if isinstance(limits, dict) else {}),
    }
    return sum(_whole(count) for name, count in quantities.items() if str(name).endswith("/gpu"))


def _whole(quantity: object) -> int:
    text = str(quantity)
    return int(text) if text.isascii() and text.isdigit() else 0
