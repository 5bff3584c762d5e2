"""The table of roles is one that runs can start and end by."""

from __future__ import annotations

from itertools import chain

import pytest

from webhook import names
from webhook.frameworks.table import FRAMEWORKS, ROLES, end_role

each_framework = pytest.mark.parametrize("framework", list(ROLES), ids=str)


def test_there_is_a_row_for_every_framework_and_for_none() -> None:
    """As a Run may name them."""
    assert set(ROLES) == {None, *FRAMEWORKS}


@each_framework
def test_a_row_speaks_of_its_own_roles_only(framework: str | None) -> None:
    """And of roles that policies know."""
    roles = ROLES[framework]
    after = roles.after
    named = {*roles.single, *chain(*roles.required), *roles.ends, *after, *chain(*after.values())}
    assert named <= set(roles.names) <= set(names.ROLES)
    assert len(set(roles.names)) == len(roles.names)


@each_framework
def test_leading_roles_have_one_replica(framework: str | None) -> None:
    """Two masters would both lead. Servers and workers may be many."""
    roles = ROLES[framework]
    assert names.COORDINATOR_ROLES & set(roles.names) <= roles.single


@each_framework
def test_some_role_can_start_first(framework: str | None) -> None:
    """Those that wait do so for roles that wait for nobody."""
    after = ROLES[framework].after
    assert not {first for roles in after.values() for first in roles} & after.keys()


@each_framework
def test_whatever_a_run_has_to_have_can_end_it(framework: str | None) -> None:
    """So that no run goes on for ever."""
    roles = ROLES[framework]
    required = [some[0] for some in roles.required] or [roles.names[0]]
    assert end_role(framework, dict.fromkeys(required)) in roles.ends


@pytest.mark.parametrize(
    ("framework", "roles", "ends"),
    [
        ("tensorflow", ("chief", "worker", "ps"), "chief"),
        ("tensorflow", ("worker", "ps"), "worker"),
        ("pytorch", ("master", "worker"), "master"),
        ("mpi", ("launcher", "worker"), "launcher"),
        ("mxnet", ("scheduler", "server", "worker"), "worker"),
        ("dask", ("scheduler", "worker", "driver"), "driver"),
        ("ray", ("head", "worker"), "head"),
    ],
)
def test_a_run_ends_with_its_leader_or_its_workers(
    framework: str, roles: tuple[str, ...], ends: str
) -> None:
    """The program's own role, where one of them runs it."""
    assert end_role(framework, dict.fromkeys(roles)) == ends


@pytest.mark.parametrize(
    ("framework", "port"),
    [
        ("tensorflow", 2222),
        ("pytorch", 23456),
        ("jax", 6666),
        ("mpi", 22),
        ("xgboost", 9999),
        ("paddle", 36543),
        ("mxnet", 9091),
        ("dask", 8786),
        ("spark", 7078),
        ("ray", 6379),
        ("deepspeed", 29500),
    ],
)
def test_ports_are_those_that_users_know(framework: str, port: int) -> None:
    """Kubeflow's for the first seven but MPI's, which is ssh's; the others' own."""
    assert FRAMEWORKS[framework].port == port
