"""What is seen of an installation, in one look."""

from __future__ import annotations

import asyncio
from base64 import b64encode

import pytest

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.rotation import Observed
from tests.controller.certificates.memory import (
    AUTHORITY,
    CONFIGURATION,
    INSTALLATION,
    SERVING,
    SLICES,
    START,
    TERMS,
    Memory,
    entry,
    refused,
)
from webhook import names
from webhook.controller.certificates.observe import Address, ObservedCertificates, Observer
from webhook.errors import ClusterError

SIGNING = new_authority("fairlead", START)
KEPT = Authority(SIGNING)
LEAF = Serving(issue_server(SIGNING, "leaf", TERMS.names, START), KEPT.bundle)


async def port(address: Address) -> int | None:
    """A replica that presents its own port's number."""
    return address.port


def look(memory: Memory) -> ObservedCertificates:
    return asyncio.run(Observer(memory.client, INSTALLATION, ask=port).observe())


def secret(memory: Memory, path: str, data: dict[str, bytes], **annotations: str) -> None:
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    memory.put(path, metadata={"annotations": annotations}, data=encoded)


def test_where_nothing_is_nothing_is_seen() -> None:
    """Not even a configuration: there is no place that clients read."""
    seen = look(Memory())
    assert seen.observed == Observed(None, None)
    assert (seen.authority, seen.serving, seen.configurations) == (None, None, ())


def test_everything_is_seen_with_the_objects_as_they_were_read() -> None:
    """For their versions."""
    memory = Memory()
    secret(memory, AUTHORITY, KEPT.data())
    secret(memory, SERVING, LEAF.data())
    bundle = b64encode(KEPT.bundle).decode()
    memory.put(CONFIGURATION, webhooks=[entry("one", bundle), entry("two"), {"name": "three"}])
    ports = [{"name": "https", "port": 8443}]
    memory.slices = [{"endpoints": [{"addresses": ["198.18.0.1"]}], "ports": ports}]
    seen = look(memory)
    assert seen.observed == Observed(KEPT, LEAF, (KEPT.bundle, b""), (8443,))
    assert seen.authority == memory.objects[AUTHORITY]
    assert seen.serving == memory.objects[SERVING]
    assert seen.configurations == ((INSTALLATION.places[0], memory.objects[CONFIGURATION]),)


def test_requests_and_garbage_are_seen_as_such() -> None:
    """Each of its own Secret."""
    memory = Memory()
    secret(memory, AUTHORITY, {"tls.crt": b"garbage"}, **{names.ROTATE: "now"})
    secret(memory, SERVING, {"tls.crt": b"garbage"})
    observed = look(memory).observed
    assert (observed.authority, observed.serving) == (None, None)
    assert (observed.renew_authority, observed.renew_leaf) == (True, False)


@pytest.mark.parametrize("path", [CONFIGURATION, SLICES, SERVING, AUTHORITY])
def test_what_cannot_be_read_is_not_taken_for_absent(path: str) -> None:
    """An authority that is there, and that nobody may read, must not be made anew."""
    memory = Memory()

    def before(_verb: str, at: str) -> None:
        if at == path:
            raise refused(403, "no right")

    memory.before = before
    with pytest.raises(ClusterError, match="no right"):
        look(memory)


def test_of_two_errors_the_first_is_told() -> None:
    """Always the same one, so that it is said once, and a pause grows."""
    memory = Memory()

    def before(_verb: str, at: str) -> None:
        raise refused(403, at)

    memory.before = before
    for _ in range(5):
        with pytest.raises(ClusterError, match=CONFIGURATION):
            look(memory)
