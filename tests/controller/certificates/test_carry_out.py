"""One step is one write, and answers the request that it fulfils."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.rotation import KeepAuthority, KeepServing, Observed, Publish
from tests.controller.certificates.memory import (
    AUTHORITY,
    CONFIGURATION,
    INSTALLATION,
    SERVING,
    START,
    TERMS,
    Memory,
    entry,
)
from webhook import names
from webhook.controller.certificates.carry_out import carry_out
from webhook.controller.certificates.observe import ObservedCertificates
from webhook.controller.certificates.secrets import asks
from webhook.errors import ClusterError

SIGNING = new_authority("one", START)
STEADY = Authority(SIGNING)
STAGED = replace(STEADY, staged=new_authority("two", START))
LEAF = Serving(issue_server(SIGNING, "leaf", TERMS.names, START), STEADY.bundle)
OTHER_LEAF = Serving(issue_server(SIGNING, "leaf", TERMS.names, START), STEADY.bundle)


def kept(memory: Memory, path: str) -> dict[str, object]:
    """A Secret that somebody asked to be renewed."""
    name = path.rpartition("/")[2]
    metadata = {"name": name, "annotations": {names.ROTATE: "now"}}
    return memory.put(path, metadata=metadata, type="Opaque", data={})


def seen_in(memory: Memory, observed: Observed) -> ObservedCertificates:
    """As it was observed, with the objects of the memory."""
    places = tuple(
        (place, memory.objects[place.path])
        for place in INSTALLATION.places
        if place.path in memory.objects
    )
    return ObservedCertificates(
        observed, memory.objects.get(AUTHORITY), memory.objects.get(SERVING), places
    )


@pytest.mark.parametrize(
    ("before", "after", "answers"),
    [
        (None, STAGED, True),
        (STEADY, STAGED, True),
        (STAGED, replace(STAGED, published_since=START), False),
        (STAGED, Authority(STAGED.staged), False),
    ],
)
def test_only_a_newly_staged_authority_answers_the_request(
    before: Authority | None, after: Authority, answers: bool
) -> None:
    """The one that is staged already may be the one whose key has leaked."""
    memory = Memory()
    kept(memory, AUTHORITY)
    seen = seen_in(memory, Observed(before, None, renew_authority=True))
    asyncio.run(carry_out(KeepAuthority(after, "why"), seen, INSTALLATION, memory))
    assert asks(memory.objects[AUTHORITY]) != answers


@pytest.mark.parametrize(
    ("before", "after", "answers"),
    [(None, LEAF, True), (LEAF, OTHER_LEAF, True), (LEAF, LEAF.trusting(b"another"), False)],
)
def test_only_a_new_leaf_answers_the_request(
    before: Serving | None, after: Serving, answers: bool
) -> None:
    """Another bundle beside the same leaf does not."""
    memory = Memory()
    kept(memory, SERVING)
    seen = seen_in(memory, Observed(STEADY, before, renew_leaf=True))
    asyncio.run(carry_out(KeepServing(after, "why"), seen, INSTALLATION, memory))
    assert asks(memory.objects[SERVING]) != answers


def test_what_is_absent_is_created_and_what_is_there_replaced() -> None:
    """One that somebody has made meanwhile is left to them."""
    memory = Memory()
    step = KeepServing(LEAF, "why")
    absent = seen_in(memory, Observed(STEADY, None))
    asyncio.run(carry_out(step, absent, INSTALLATION, memory))
    assert memory.objects[SERVING]["type"] == "kubernetes.io/tls"
    with pytest.raises(ClusterError, match="409"):
        asyncio.run(carry_out(step, absent, INSTALLATION, memory))
    there = seen_in(memory, Observed(STEADY, LEAF))
    asyncio.run(carry_out(step, there, INSTALLATION, memory))
    with pytest.raises(ClusterError, match="409"):
        asyncio.run(carry_out(step, there, INSTALLATION, memory))
    assert [verb for verb, _ in memory.writes] == ["create", "create", "replace", "replace"]


def test_only_configurations_that_need_it_are_written() -> None:
    """Of several, those that have the bundle already are left alone."""
    memory = Memory()
    second = replace(INSTALLATION.places[0], name="second")
    installation = replace(INSTALLATION, places=(INSTALLATION.places[0], second))
    for path in (CONFIGURATION, second.path):
        memory.put(path, webhooks=[entry("one"), entry("two")])
    both = tuple((place, memory.objects[place.path]) for place in installation.places)
    seen = ObservedCertificates(Observed(STEADY, LEAF), None, None, both)
    asyncio.run(carry_out(Publish(STEADY.bundle, "why"), seen, installation, memory))
    assert memory.writes == [("patch", CONFIGURATION), ("patch", second.path)]
    # Wiped in one of them.
    memory.put(CONFIGURATION, webhooks=[entry("one")])
    both = tuple((place, memory.objects[place.path]) for place in installation.places)
    seen = ObservedCertificates(Observed(STEADY, LEAF), None, None, both)
    asyncio.run(carry_out(Publish(STEADY.bundle, "why"), seen, installation, memory))
    assert memory.writes[2:] == [("patch", CONFIGURATION)]
