"""Gangs of every framework, as hypothesis draws them: small ones, with all that may differ."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from webhook.frameworks.replica_group import Gang
from webhook.frameworks.table import FRAMEWORKS, ROLES

_OPTIONS: Final[dict[str, dict[str, st.SearchStrategy[Any]]]] = {
    "tensorflow": {"masterTaskType": st.sampled_from(["chief", "master"])},
    "pytorch": {
        "nprocPerNode": st.sampled_from([None, 1, 8, "auto", "gpu", "cpu"]),
        "elastic": st.none() | st.just({"minReplicas": 1, "maxRestarts": 7}),
    },
    "mpi": {
        "implementation": st.sampled_from(["OpenMPI", "Intel", "MPICH"]),
        "slotsPerWorker": st.none() | st.integers(1, 8),
        "launcherAsWorker": st.booleans(),
        "sshAuthMountPath": st.sampled_from(["/root/.ssh", "/home/mpiuser/.ssh"]),
    },
    "spark": {"executors": st.none() | st.integers(0, 9)},
    "deepspeed": {
        "slotsPerWorker": st.none() | st.integers(1, 8),
        "sshAuthMountPath": st.sampled_from(["/root/.ssh", "/home/mpiuser/.ssh"]),
        "sshPort": st.none() | st.integers(1, 65535),
    },
}

Replica = tuple[str, int]


@st.composite
def gangs(draw: st.DrawFn, framework: str, most: int = 4) -> Gang:
    """A gang of the framework that the model would let through."""
    counts = draw(_counts(framework, most))
    strategies = {"port": st.none() | st.integers(1, 65535), **_OPTIONS.get(framework, {})}
    options = {name: draw(strategy) for name, strategy in strategies.items()}
    alike = draw(st.booleans())
    gpus = st.just(draw(st.integers(0, 8))) if alike else st.integers(0, 8)
    return Gang(
        run=draw(st.sampled_from(["a", "mnist", "resnet50-on-imagenet-0"])),
        namespace=draw(st.sampled_from(["default", "ml-research"])),
        framework=framework,
        counts=counts,
        options=FRAMEWORKS[framework].settings.model_validate(options),
        cluster_domain=draw(st.sampled_from(["", "cluster.local"])),
        devices={
            role: tuple(draw(st.lists(gpus, min_size=count, max_size=count)))
            for role, count in counts.items()
        },
        labels={"fairlead.dev/kind": "job", "fairlead.dev/run-uid": "8e1c", "team": "vision"},
        service_account=draw(st.sampled_from(["default", "spark"])),
    )


@st.composite
def _counts(draw: st.DrawFn, framework: str, most: int) -> dict[str, int]:
    roles = ROLES[framework]
    chosen = set(draw(st.lists(st.sampled_from(roles.names), unique=True)))
    chosen |= {draw(st.sampled_from(some)) for some in roles.required if not chosen & set(some)}
    chosen -= {newer for newer, older in roles.newer.items() if older in chosen}
    return {
        role: 1 if role in roles.single else draw(st.integers(1, most))
        for role in roles.names
        if role in chosen
    }


def replicas(gang: Gang) -> list[Replica]:
    """All of them, role by role."""
    return [(role, index) for role, count in gang.counts.items() for index in range(count)]


def hosts(gang: Gang) -> set[str]:
    """All addresses under which any of them is reached."""
    return {form(*replica) for replica in replicas(gang) for form in (gang.host, gang.short_host)}
