"""For each rule of the Run's API a Run that breaks it, and one that is at its limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.run.whole_runs import a_run
from webhook.frameworks.framework import Roles
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.run.model import DEFAULT_ROLE

Json = dict[str, Any]


class Case(NamedTuple):
    """A Run that breaks one rule and no other, and one that just keeps it.

    words: what only that rule's message has.
    """

    broken: Json
    kept: Json
    field: str
    words: str


def named(name: str, run: Json) -> Json:
    """The Run under another name."""
    return {**run, "metadata": {**run["metadata"], "name": name}}


def in_each_layer(field: str, broken: Json, kept: Json, words: str) -> Iterator[Case]:
    """An environment of the run, of a role and of a single replica."""
    for path, layer in (
        ("spec", lambda each: {"environment": each}),
        ("spec.replicas[worker]", lambda each: {"replicas": {"worker": {"environment": each}}}),
        (
            "spec.replicas[worker].byIndex[0]",
            lambda each: {"replicas": {"worker": {"byIndex": [{"index": 0, "environment": each}]}}},
        ),
    ):
        at = f"{path}.environment.{field}"
        yield Case(a_run(**layer(broken)), a_run(**layer(kept)), at, words)


def _roles_of(framework: str | None, roles: Roles) -> Iterator[Case]:
    of = f"framework {framework}" if framework else "a run without a framework"
    of_it = {"framework": framework} if framework else {}
    known = ", ".join(roles.known)
    whole: Json = {role: {} for role in roles.known}
    if framework == "tensorflow":
        del whole["chief"]
    unknown = next(role for role in ("executor", "worker") if role not in roles.known)
    yield Case(
        a_run(**of_it, replicas={**whole, unknown: {}} if len(whole) < 5 else {unknown: {}}),
        a_run(**of_it, replicas=whole),
        "spec.replicas",
        f"{of} has the roles {known} only",
    )
    if DEFAULT_ROLE not in roles.known:
        yield Case(
            a_run(**of_it),
            a_run(**of_it, replicas=whole),
            "spec.replicas",
            f"is required for {of}: its roles are {known}",
        )
    for some in roles.required:
        if set(some) != set(roles.known):
            others: Json = {role: {} for role in whole if role not in some}
            yield Case(
                a_run(**of_it, replicas=others),
                a_run(**of_it, replicas={**others, some[-1]: {}}),
                "spec.replicas",
                f"{of} needs a {' or a '.join(some)}: add it",
            )


def _counts() -> Iterator[Case]:
    for framework, roles in ROLES.items():
        of_it = {"framework": framework} if framework else {}
        for role in roles.known:
            if role in roles.single:
                needed: Json = {some[-1]: {} for some in roles.required}
                yield Case(
                    a_run(**of_it, replicas={**needed, role: {"count": 2}}),
                    a_run(**of_it, replicas={**needed, role: {"count": 1}}),
                    "spec.replicas",
                    "one replica at most",
                )
    yield Case(
        a_run(framework="tensorflow", replicas={"master": {}, "chief": {}}),
        a_run(framework="tensorflow", replicas={"chief": {}}),
        "spec.replicas",
        "chief is the newer name of master",
    )
    many: list[Json] = [{"worker": {}}, {"master": {}, "worker": {}}]
    for replicas in many:
        yield Case(
            a_run(kind="service", replicas=replicas),
            a_run(kind="service", replicas={"master": {}}),
            "spec.replicas",
            "one pod, of role master",
        )
    elastic = {"framework": "pytorch", "replicas": {"master": {}, "worker": {"count": 3}}}
    yield Case(
        a_run(**elastic, pytorch={"elastic": {"minReplicas": 5}}),
        a_run(**elastic, pytorch={"elastic": {"minReplicas": 4}}),
        "spec.pytorch.elastic.minReplicas",
        "more than all replicas",
    )
    workers = {"count": 7, "byIndex": [{"index": 7}]}
    yield Case(
        a_run(replicas={"worker": workers}),
        a_run(replicas={"worker": {"count": 7, "byIndex": [{"index": 6}]}}),
        "spec.replicas[worker].byIndex",
        "less than count",
    )


def _names() -> Iterator[Case]:
    for name in ("1mnist", "mnist.1"):
        yield Case(named(name, a_run()), named("m-1", a_run()), "metadata.name", "run's Service")
    too_long = "at most 63 characters"
    workers = a_run(replicas={"worker": {"count": 10000}})
    eleven = a_run(replicas={"master": {}, "worker": {"count": 11}})
    for run, most in ((a_run(), 54), (workers, 51), (eleven, 53)):
        yield Case(named("m" * (most + 1), run), named("m" * most, run), "metadata.name", too_long)
    replicas: Json = {"scheduler": {}, "worker": {}, "driver": {}}
    dask = a_run(backend="dask", framework="dask", replicas=replicas)
    for run, most, words in (
        (a_run(backend="jobset"), 46, "JobSet appends 8"),
        (a_run(backend="jobset", replicas={"worker": {"count": 11}}), 45, "JobSet appends 8"),
        (dask, 37, "a name of at most 37"),
    ):
        yield Case(named("m" * (most + 1), run), named("m" * most, run), "metadata.name", words)


def _companions() -> Iterator[Case]:
    yield Case(
        a_run(kind="notebook", framework="pytorch"),
        a_run(kind="build", framework="pytorch"),
        "spec.framework",
        "kinds experiment, job and build",
    )
    for field, value in (("ports", [{"port": 80}]), ("maxAgeSeconds", 5)):
        yield Case(
            a_run(**{field: value}),
            a_run(**{field: value}, kind="tensorboard"),
            f"spec.{field}",
            "kinds notebook, tensorboard and service",
        )
    for framework in FRAMEWORKS:
        roles: Json = {some[-1]: {} for some in ROLES[framework].required}
        yield Case(
            a_run(**{framework: {}}),
            a_run(**{framework: {}}, framework=framework, replicas=roles),
            f"spec.{framework}",
            f"is valid with framework {framework} only: remove it",
        )
    first = {"port": 1, "name": "a"}
    for second in ({"port": 2}, {"port": 2, "name": "a"}):
        yield Case(
            a_run(kind="service", ports=[first, second]),
            a_run(kind="service", ports=[first, {"port": 2, "name": "b"}]),
            "spec.ports",
            "several ports",
        )


CASES: list[Case] = [
    *_names(),
    *(case for framework, roles in ROLES.items() for case in _roles_of(framework, roles)),
    *_counts(),
    *_companions(),
]
