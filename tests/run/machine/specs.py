"""Random Runs, small ones: what matters is how their parts meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from tests.run.machine.things import Json
from webhook.run.observed import Needs

T = TypeVar("T")

TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "registry.example/train"}]}}
# framework, its roles with the most replicas that are tried, and the roles that may be left out.
SHAPES: tuple[tuple[str | None, dict[str, int], tuple[str, ...]], ...] = (
    (None, {}, ()),
    (None, {"master": 1, "worker": 2}, ("master",)),
    ("tensorflow", {"master": 1, "worker": 2, "ps": 1}, ("master", "ps")),
    ("pytorch", {"master": 1, "worker": 2}, ("worker",)),
    ("mpi", {"launcher": 1, "worker": 2}, ("worker",)),
    ("jax", {"worker": 3}, ()),
    ("dask", {"scheduler": 1, "worker": 2, "driver": 1}, ("driver",)),
)
RESTARTS = (*("OnFailure",) * 6, "Never", "ExitCode")


class Choose(Protocol):
    """Picks one of some values: by a random number, or as hypothesis wants it."""

    def __call__(self, values: Sequence[T], /) -> T:
        """One of them."""


def training(choose: Choose) -> Json:
    """The spec of a run that comes to an end."""
    framework, roles, optional = choose(SHAPES)
    replicas = {
        role: {"count": choose(range(1, most + 1)), "restartPolicy": choose(RESTARTS)}
        for role, most in roles.items()
        if role not in optional or choose((True, False))
    }
    return {
        **({"framework": framework} if framework else {}),
        **({"replicas": replicas} if replicas else {}),
        "restartScope": choose(("Replica", "Replica", "Role", "Run")),
        "backoffLimit": choose((3, 6, 3, 1, 0)),
        **_given("disruptionLimit", choose((None, None, None, 3, 1, 0))),
        **_given("activeDeadlineSeconds", choose((None, None, None, 900, 60))),
        **_common(choose),
    }


def elastic(choose: Choose) -> Json:
    """The spec of such a run that goes on with fewer replicas."""
    led = choose((True, False))
    workers = {"count": choose((2, 3)), "restartPolicy": choose(RESTARTS)}
    return {
        **training(choose),
        "framework": "pytorch",
        "pytorch": {"elastic": {"minReplicas": choose((1, 2))}},
        "replicas": {**({"master": {"count": 1}} if led else {}), "worker": workers},
    }


def gang(choose: Choose) -> Json:
    """The spec of such a run whose replicas start all at once, and have room alone."""
    within = choose(("1m", "1m", "10m"))
    return {**choose((training, training, elastic))(choose), "gang": {"startWithin": within}}


def queued(choose: Choose) -> Json:
    """The spec of such a run in a queue of Kueue."""
    return {**training(choose), "queue": "ml"}


def serving(choose: Choose) -> Json:
    """The spec of a notebook."""
    return {
        "kind": "notebook",
        **_given("maxAgeSeconds", choose((None, 900, 60))),
        **_common(choose),
    }


def _common(choose: Choose) -> Json:
    return {
        "template": TEMPLATE,
        "cleanPodPolicy": choose(("Running", "All", "None")),
        "suspend": choose((False,) * 7 + (True,)),
        **_given("ttlSecondsAfterFinished", choose((None, 0, 30))),
    }


def _given(field: str, value: int | None) -> Json:
    return {} if value is None else {field: value}


def needs_of(spec: Json) -> Needs:
    """What a run of this spec needs beside its pods, as its plan would say."""
    if spec.get("kind") == "notebook":
        return Needs(address="http://notebook.lab.svc:8888")
    mpi = spec.get("framework") == "mpi"
    return Needs(config_map=mpi, keys=mpi)


def finishing_role(spec: Json) -> str:
    """The role whose pods end the run, when nothing goes wrong; empty for all of an elastic run."""
    if "elastic" in (spec.get("pytorch") or {}):
        return ""
    roles = spec.get("replicas") or {"master": {}}
    order = ("launcher", "driver", "master", "chief", "scheduler", "head", "worker")
    return next(role for role in order if role in roles)
