"""JobSet v1alpha2: one replicated job per role, one Job per replica, with Fairlead's variables.

Source: api/jobset/v1alpha2/jobset_types.go and pkg/webhooks of kubernetes-sigs/jobset 0.10.

The pods of a replicated job share one template. A variable that differs between replicas is made
from the index of the Job, which JobSet writes on each pod: `job-index` within the role, and
`job-global-index`, which is the rank, because roles are in the framework's order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.dns_names import MAX_LABEL
from webhook.errors import InvalidRun
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.table import ROLES, end_role, render_env, render_shared
from webhook.run.backends.backend import (
    Backend,
    FieldMapping,
    ObjectKind,
    add_labels,
    job_limits,
    make_object,
    render_fields,
    render_template,
)
from webhook.run.plan import make_gang
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.backend import Drafts, Manifest
    from webhook.run.model import Run

# What JobSet appends to a role and its index: the pod's index in its Job, and five random letters.
SUFFIX: Final = len("-0-abcde")
# What the coordinator's address has beside the role and twice the JobSet's name: it is the value of
# a label (CoordinatorEndpoint of pkg/controllers/jobset_controller.go).
COORDINATOR: Final = len("--0-0.")
INDEX: Final = "FAIRLEAD_JOB_INDEX"
RANK: Final = "FAIRLEAD_JOB_GLOBAL_INDEX"
ANNOTATIONS: Final = {
    INDEX: "jobset.sigs.k8s.io/job-index",
    RANK: "jobset.sigs.k8s.io/job-global-index",
}
KIND: Final = ObjectKind(
    api_version="jobset.x-k8s.io/v1alpha2",
    kind="JobSet",
    framework=None,
    roles={},
    own_variables=True,
    fields=(
        FieldMapping(
            "restartScope",
            "",
            only=("Replica", "Run"),
            place="Run: failurePolicy; Replica: the Job's backoffLimit",
        ),
        FieldMapping(
            "backoffLimit",
            "",
            place="failurePolicy.maxRestarts with restartScope Run, else each Job's backoffLimit",
            unset="3 with restartScope Run, else 6",
            absent={"": "6"},
            note="with restartScope Replica the limit is that of each replica, not of all together",
        ),
        FieldMapping(
            "replicas.*.restartPolicy",
            "",
            only=("Never", "OnFailure", "ExitCode"),
            place="Never: the Job's backoffLimit 0; ExitCode: its podFailurePolicy",
        ),
        FieldMapping(
            "activeDeadlineSeconds",
            "",
            place="each Job's activeDeadlineSeconds",
            note="each replica has the deadline, from its own start",
        ),
        FieldMapping("cleanPodPolicy", "", only=("Running",)),
        FieldMapping("ttlSecondsAfterFinished", "ttlSecondsAfterFinished"),
        FieldMapping("suspend", "suspend"),
    ),
)


@dataclass(frozen=True)
class _JobSetGang(Gang):
    """The replicas with the hostnames that JobSet gives them."""

    def pod(self, role: str, index: int) -> str:
        """Return the hostname of pod 0 of a replica's Job."""
        return f"{super().pod(role, index)}-0"

    def host(self, role: str, index: int) -> str:
        """Return the short address: kubectl may apply the JobSet in any namespace."""
        return self.short_host(role, index)


class JobSetBackend(Backend):
    """JobSet."""

    name = "jobset"
    only = KIND

    def kind(self, run: Run) -> ObjectKind:
        """Return the kind, with the roles of the run's framework."""
        return replace(KIND, roles={role: role for role in ROLES[run.spec.framework].names})

    def own_problems(self, run: Run) -> Iterable[Problem]:
        """Yield a problem if the name is too long."""
        return _name_problems(run)

    def draft_problems(self, drafts: Drafts) -> Iterator[Problem]:
        """Yield problems with what the framework gives to the replicas."""
        subject, at = f"framework {drafts.run.spec.framework}", ("spec", "framework")
        gang = _gang(drafts)
        try:
            shared = render_shared(gang)
            variables_by_role = {role: _variables(gang, role) for role in drafts.roles}
        except InvalidRun as error:
            for problem in error.problems:
                path, _, what = problem.partition(": ")
                yield Problem(tuple(path.split(".")), what)
            return
        if shared.files or shared.ssh_keys_at:
            what = (
                f"{subject} needs files or SSH keys, which a JobSet does not have; use backend "
                "native"
            )
            yield Problem(at, what)
        for role, variables in variables_by_role.items():
            for name, text in variables.items():
                if text is None:
                    what = (
                        f"in {subject}, {name} of role {role} differs between replicas in a way "
                        "that a JobSet cannot write; use backend native"
                    )
                    yield Problem(at, what)

    def render(self, drafts: Drafts) -> Sequence[Manifest]:
        """Return the JobSet."""
        run, gang = drafts.run, _gang(drafts)
        spec = render_fields(run, self.kind(run))
        if run.spec.restart_scope == "Run":
            # JobSet's own default is no restart, which is not what the scope asks for.
            spec["failurePolicy"] = {"maxRestarts": run.spec.backoff_limit}
        if len(drafts.roles) > 1:
            end = end_role(run.spec.framework, drafts.roles)
            spec["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [end]}
        leader = next((role for role in drafts.roles if role in names.COORDINATOR_ROLES), None)
        if leader and len(drafts.roles) > 1:
            # Without it, Fairlead takes worker 0 for a second leader.
            spec["coordinator"] = {"replicatedJob": leader, "jobIndex": 0, "podIndex": 0}
        spec["replicatedJobs"] = [_replicated_job(drafts, gang, role) for role in drafts.roles]
        made = make_object(run, KIND, spec)
        metadata = made["metadata"]
        if run.spec.framework:
            metadata.setdefault("labels", {})[names.FRAMEWORK] = run.spec.framework
        if settings := _written_settings(run):
            # The variables follow from these, and `run convert` reads them back.
            metadata.setdefault("annotations", {})[names.SETTINGS] = json.dumps(settings)
        return [made]


def _written_settings(run: Run) -> JsonObject:
    settings = run.spec.settings
    return settings.model_dump(by_alias=True, exclude_unset=True) if settings is not None else {}


def _name_problems(run: Run) -> Iterator[Problem]:
    roles = run.spec.roles
    longest = max(len(f"-{role}-{replica_spec.count - 1}") for role, replica_spec in roles.items())
    room = MAX_LABEL - longest - SUFFIX
    what = "calls pods <run>-<role>-<index>-0-<five letters>, in"
    if leaders := [role for role in roles if role in names.COORDINATOR_ROLES and len(roles) > 1]:
        longest = max(map(len, leaders))
        if (left := (MAX_LABEL - COORDINATOR - longest) // 2) < room:
            room = left
            what = "writes the leader's address, <run>-<role>-0-0.<run>, into a label, of"
    if len(run.name) > room:
        text = (
            f"is too long: JobSet {what} at most {MAX_LABEL} characters; with these replicas a "
            f"name has at most {room}"
        )
        yield Problem(("metadata", "name"), text)


def own_labels(run: Run) -> dict[str, str]:
    """Return the labels that `render` adds to each template: JobSet's own name no framework."""
    return {names.FRAMEWORK: run.spec.framework} if run.spec.framework else {}


def own_env(drafts: Drafts, role: str) -> list[JsonObject]:
    """Return the variables that `render` adds to a role."""
    return [*_env(_gang(drafts), role, [])]


def _gang(drafts: Drafts) -> _JobSetGang:
    gang = make_gang(drafts.run, [*drafts.roles.values()], "")
    return _JobSetGang(**{field.name: getattr(gang, field.name) for field in fields(gang)})


def _replicated_job(drafts: Drafts, gang: Gang, role: str) -> JsonObject:
    run, draft = drafts.run, drafts.roles[role]
    replica = run.spec.roles[role]
    # The first container, by which `run convert` knows the main one.
    template = render_template(draft, first=True)
    main = template["spec"]["containers"][0]
    if env := [*_env(gang, role, main.get("env") or [])]:
        main["env"] = env
    add_labels(template, own_labels(run))
    # A restart is a new pod, as with Fairlead's own controller.
    template["spec"]["restartPolicy"] = "Never"
    limits = job_limits(run, role, main["name"])
    job = {"parallelism": 1, "completions": 1, **limits, "template": template}
    result: JsonObject = {"name": role}
    if "count" in replica.model_fields_set:
        result["replicas"] = replica.count
    after = ROLES[run.spec.framework].after.get(role, ())
    if earlier := [earlier_role for earlier_role in after if earlier_role in drafts.roles]:
        result["dependsOn"] = [
            {"name": earlier_role, "status": "Ready"} for earlier_role in earlier
        ]
    return {**result, "template": {"spec": job}}


def _env(gang: Gang, role: str, written_env: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the framework's variables and the container's own, which win."""
    kept = {variable.get("name") for variable in written_env}
    variables = {k: v for k, v in _variables(gang, role).items() if k not in kept and v is not None}
    for name, annotation in ANNOTATIONS.items():
        if any(f"$({name})" in text for text in variables.values()):
            path = f"metadata.annotations['{annotation}']"
            yield {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    yield from ({"name": name, "value": text} for name, text in variables.items())
    yield from written_env


def _variables(gang: Gang, role: str) -> dict[str, str | None]:
    """Return the variables of a role's template; None where no index gives the value."""
    count = gang.counts[role]
    envs = [render_env(gang, role, index).env for index in range(count)]
    indexes, ranks = range(count), [gang.rank(role, index) for index in range(count)]
    result: dict[str, str | None] = {}
    for name in envs[0]:
        values = [env.get(name) for env in envs]
        if len({*values}) == 1:
            result[name] = values[0]
        else:
            result[name] = _with_number(values, indexes, INDEX) or _with_number(values, ranks, RANK)
    return result


def _with_number(values: Sequence[Any], numbers: Sequence[int], name: str) -> str | None:
    """Return the text that gives each value if $(name) is its number; None if there is none."""
    first, number = values[0], str(numbers[0])
    if None in values:
        return None
    start = first.find(number)
    while start >= 0:
        head, tail = first[:start], first[start + len(number) :]
        if all(
            value == f"{head}{written_number}{tail}"
            for value, written_number in zip(values, numbers, strict=True)
        ):
            return f"{head}$({name}){tail}"
        start = first.find(number, start + 1)
    return None
