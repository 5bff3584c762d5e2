"""A write that fails again and again is known, as long as that is so and no longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controller.runs import refused
from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook.api_paths import ApiPath, CollectionPath
from webhook.errors import ClusterError
from webhook.kube.failing_writes import FORGOTTEN, FailingWrites, Write, fails_all, resource_of

POLICIES = CollectionPath("fairlead.dev/v1alpha1", "placementpolicies")
STATUS = POLICIES.path_of("pool").subresource("status")
EVENTS = CollectionPath("v1", "events", "team")
PATCH = Write("PATCH", "placementpolicies/status")
NO_RIGHT = (
    'placementpolicies.fairlead.dev "pool" is forbidden: User "system:serviceaccount:x:y" cannot '
    'patch resource "placementpolicies/status" in API group "fairlead.dev" at the cluster scope'
)
FORBIDDEN = ClusterError("x", status=403, reason="Forbidden", words=NO_RIGHT)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_lasts_from_the_first_failure_to_the_last() -> None:
    """One failure is none that lasts; what succeeds once does not fail."""
    clock = Clock()
    writes = FailingWrites(clock)
    assert writes.seconds() == {}
    writes.note("PATCH", STATUS, FORBIDDEN)
    clock.now = 500.0
    assert writes.seconds() == {PATCH: 0.0}
    writes.note("PATCH", STATUS, FORBIDDEN)
    clock.now = 700.0
    assert writes.seconds() == {PATCH: 500.0}
    writes.note("POST", EVENTS, None)
    assert writes.seconds() == {PATCH: 500.0, Write("POST", "events"): 0.0}
    writes.note("PATCH", STATUS, None)
    assert writes.seconds()[PATCH] == 0.0
    writes.note("PATCH", STATUS, FORBIDDEN)
    assert writes.seconds()[PATCH] == 0.0


def test_what_is_not_tried_any_more_is_forgotten() -> None:
    """Another process may lead by now, or nothing waits to be written."""
    clock = Clock()
    writes = FailingWrites(clock)
    for now in (0.0, 600.0):
        clock.now = now
        writes.note("PATCH", STATUS, FORBIDDEN)
    clock.now = 600.0 + FORGOTTEN - 1
    assert writes.seconds() == {PATCH: 600.0}
    clock.now += 1
    assert writes.seconds() == {PATCH: 0.0}
    writes.note("PATCH", STATUS, FORBIDDEN)
    assert writes.seconds() == {PATCH: 0.0}


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (FORBIDDEN, True),
        (ClusterError("no answer"), True),
        *((refused(status, "x"), True) for status in (401, 429, 500, 503, 504)),
        *((refused(status, "x"), False) for status in (400, 404, 409, 410, 413, 422)),
        (refused(403, 'pods "x" is forbidden: exceeded quota: small'), False),
        (refused(403, 'admission webhook "x" denied the request: no'), False),
        (refused(403, "unable to create new content in namespace x"), False),
    ],
)
def test_what_lies_in_an_object_is_no_failure(error: ClusterError, wanted: bool) -> None:
    """Its author is told of it; other objects can be written."""
    assert fails_all(error) is wanted
    clock = Clock()
    writes = FailingWrites(clock)
    for clock.now in (0.0, 60.0):
        writes.note("POST", EVENTS, error)
    assert writes.seconds() == {Write("POST", "events"): 60.0 if wanted else 0.0}


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        (POLICIES, "placementpolicies"),
        (POLICIES.path_of("a.b"), "placementpolicies"),
        (STATUS, "placementpolicies/status"),
        (EVENTS, "events"),
        (CollectionPath("v1", "pods"), "pods"),
        (CollectionPath("v1", "namespaces").path_of("team"), "namespaces"),
        (CollectionPath("apps/v1", "deployments", "a").path_of("d"), "deployments"),
        (CollectionPath("v1", "pods", "a").path_of("d").subresource("eviction"), "pods/eviction"),
        (ApiPath("version"), "unknown"),
    ],
)
def test_a_resource_is_read_from_the_path(path: ApiPath, resource: str) -> None:
    """So labels of a metric never have the name of an object or a namespace."""
    assert resource_of(path) == resource


async def test_a_client_knows_it_of_each_write(tmp_path: Path) -> None:
    """Not of reads, whose callers may do without a right."""

    async def handle(request: Request, answer: Answer) -> None:
        if request.path == STATUS:
            await answer.status(403, "Forbidden", NO_RIGHT)
        else:
            await answer.json({})

    async with fake_api(handle) as api, client_of(api, tmp_path) as client:
        clock = Clock()
        client.failing_writes = FailingWrites(clock)
        for clock.now in (0.0, 60.0):
            with pytest.raises(ClusterError):
                await client.patch(STATUS, [], "json")
            with pytest.raises(ClusterError):
                await client.get(STATUS)
        await client.create(EVENTS, {})
        assert client.failing_writes.seconds() == {PATCH: 60.0, Write("POST", "events"): 0.0}
    async with client_of(api, tmp_path) as client:
        client.failing_writes = FailingWrites(clock)
        for clock.now in (60.0, 70.0):
            with pytest.raises(ClusterError, match="cannot connect"):
                await client.create(EVENTS, {})
        assert client.failing_writes.seconds() == {Write("POST", "events"): 10.0}
