"""What holds for the replicas of every framework."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.frameworks.gangs import gangs, hosts, replicas
from tests.frameworks.resolvers.all_of_them import RESOLVERS
from tests.frameworks.resolvers.view import View
from webhook.errors import InvalidRun
from webhook.frameworks.framework import ReplicaEnv, SharedConfig
from webhook.frameworks.replica_group import Gang
from webhook.frameworks.table import FRAMEWORKS, ROLES, render_env, render_shared

lawful = settings(
    deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow]
)
each_framework = pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
# MAX_ARG_STRLEN of Linux: no string that a program is started with may be as long.
ONE_VARIABLE = 128 * 1024


def views(gang: Gang) -> dict[tuple[str, int], View]:
    """What each replica's process knows; those that are told nothing are left out."""
    assert gang.framework is not None
    resolve, files = RESOLVERS[gang.framework], render_shared(gang).files
    known = {each: resolve(render_env(gang, *each).env, files) for each in replicas(gang)}
    return {each: view for each, view in known.items() if view is not None}


@each_framework
@lawful
@given(data=st.data())
def test_all_replicas_agree_on_the_cluster(framework: str, data: st.DataObject) -> None:
    """What they have to agree on is the same for all of them."""
    known = views(data.draw(gangs(framework)))
    assert len({view.cluster for view in known.values()}) <= 1


@each_framework
@lawful
@given(data=st.data())
def test_every_place_is_taken_once(framework: str, data: st.DataObject) -> None:
    """No two replicas are told the same place, and ranks leave no gap."""
    known = views(data.draw(gangs(framework)))
    places = [view.place for view in known.values() if view.place is not None]
    assert len(set(places)) == len(places)
    for view in known.values():
        assert view.size in (None, len(places))
    ranks = [place for place in places if isinstance(place, int)]
    assert sorted(ranks) == list(range(len(ranks)))


@each_framework
@lawful
@given(data=st.data())
def test_every_address_is_that_of_a_replica(framework: str, data: st.DataObject) -> None:
    """Nobody is sent to a pod that there will not be."""
    gang = data.draw(gangs(framework))
    named = set(chain.from_iterable(view.hosts for view in views(gang).values()))
    assert named <= hosts(gang)


@each_framework
@lawful
@given(data=st.data())
def test_the_variables_of_a_run_do_not_depend_on_order(framework: str, data: st.DataObject) -> None:
    """Byte for byte, whoever asks first."""
    gang = data.draw(gangs(framework))
    again = replace(gang)
    order = data.draw(st.permutations(replicas(gang)))
    assert {each: render_env(gang, *each) for each in order} == {
        each: render_env(again, *each) for each in replicas(gang)
    }
    assert render_shared(gang) == render_shared(again)


@each_framework
@lawful
@given(data=st.data())
def test_variables_have_names_and_values_that_a_container_takes(
    framework: str, data: st.DataObject
) -> None:
    """No value is empty: some frameworks parse an empty variable as a number, and fail.

    But for NVIDIA's, which are read before any program is.
    """
    gang = data.draw(gangs(framework))
    for each in replicas(gang):
        for name, value in render_env(gang, *each).env.items():
            assert re.fullmatch(r"[A-Z_][A-Za-z0-9_]*", name)
            assert value or name.startswith("NVIDIA_")
            assert value.isascii()
            assert value.isprintable()
            # Kubernetes would expand it.
            assert "$(" not in value


@each_framework
@lawful
@given(data=st.data())
def test_replicas_of_one_role_get_the_same_variables(framework: str, data: st.DataObject) -> None:
    """Their values may differ, their names do not."""
    gang = data.draw(gangs(framework))
    for role, count in gang.counts.items():
        assert len({frozenset(render_env(gang, role, index).env) for index in range(count)}) == 1


def too_large(gang: Gang) -> bool:
    """Whether the run is refused, with a reason that names the field."""
    try:
        render_shared(gang)
    except InvalidRun as refused:
        return all(problem.startswith("spec.") for problem in refused.problems)
    return False


@each_framework
@pytest.mark.parametrize("name", ["a", "n" * 40])
@pytest.mark.parametrize("count", [10, 1_100, 10_000])
def test_the_environment_of_a_run_fits_into_a_pod(framework: str, name: str, count: int) -> None:
    """Whatever its size: it is told, within Linux's and Kubernetes' limits, or it is refused."""
    counts = {
        role: 1 if role in ROLES[framework].single else count
        for role in ROLES[framework].names
        if role not in ROLES[framework].newer
    }
    gang = Gang(
        name, "n" * 63, framework, counts, FRAMEWORKS[framework].settings(), "cluster.local"
    )
    if too_large(gang):
        assert (framework in ("tensorflow", "deepspeed") and count == 10_000) or name != "a"
        return
    shared = render_shared(gang)
    # A ConfigMap's limit counts the bytes of all its values.
    assert sum(len(text.encode()) for text in shared.files.values()) <= 1024 * 1024
    for role, of_role in counts.items():
        for index in (0, of_role - 1):
            for key, value in render_env(gang, role, index).env.items():
                assert len(f"{key}={value}\0".encode()) < ONE_VARIABLE


def test_every_framework_has_a_module() -> None:
    """The table knows all that a Run may name."""
    for framework in FRAMEWORKS:
        roles = {role: 1 for some in ROLES[framework].required for role in some[:1]}
        role = next(iter(roles))
        assert isinstance(render_env(Gang("a", "b", framework, roles), role, 0), ReplicaEnv)


def test_a_run_without_a_framework_gets_no_variables() -> None:
    """Its replicas know nothing of each other."""
    gang = Gang("a", "b", None, {"master": 1, "worker": 3})
    assert render_env(gang, "worker", 2) == ReplicaEnv()
    assert render_shared(gang) == SharedConfig()
