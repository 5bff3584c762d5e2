"""Random reviews against `fairlead serve` over TLS: it answers all of them, and goes on."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.admission.reviews import Answer, pod, review
from tests.cli.served import Served, served
from tests.fuzz.additions import Json
from tests.fuzz.effort import BATCH, batches, fuzz
from tests.fuzz.mutations import Mutation, byte_mutations, damaged, encoded, mutated, mutations
from tests.fuzz.properties import Examiner
from tests.fuzz.reviews import NAMESPACES, reviews
from tests.fuzz.tally import Tally
from tests.fuzz.world import EXCEPTIONS, FILES
from tests.laws.strategies import one
from webhook import names

SHARE = 0.1  # of the cases in process


class Client:
    """One connection, which the server keeps whatever comes."""

    def __init__(self, server: Served) -> None:
        self._connection = server.connect()

    def post(self, body: bytes) -> Answer:
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/mutate", body, headers)
        response = self._connection.getresponse()
        assert response.getheader("Connection") is None
        told = {key.lower(): value for key, value in response.getheaders()}
        return Answer(response.status, told, response.read())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The policies that ship, exceptions, and the namespaces that the server is to know."""
    path = tmp_path_factory.mktemp("fuzz")
    (path / "policies").mkdir()
    for name, content in FILES.items():
        (path / "policies" / Path(name).name).write_bytes(content)
    (path / "policies" / "exceptions.yaml").write_bytes(EXCEPTIONS)
    objects: list[Json] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in NAMESPACES.items()
    ]
    (path / "cluster.yaml").write_text(yaml.safe_dump_all(objects))
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    """One server for all, at its most talkative, which is as well in the end as it began."""
    options = ("--log-level", "debug")
    with served(folder, *options, cluster=("--namespaces", str(folder / "cluster.yaml"))) as found:
        assert found.line("serving")["policies"] > 10
        yield found
        assert found.process.poll() is None
        assert Client(found).post(encoded(review())).response["allowed"]
        assert found.readiness()[0] == 200
        assert "fairlead_engine_errors_total 0.0" in found.metrics()


@pytest.fixture(scope="module")
def examiner(server: Served, tally: Tally) -> Examiner:
    """Sends over one connection."""
    return Examiner("over TLS", Client(server).post, tally)


def test_exceptions_are_served_with_the_policies(examiner: Examiner) -> None:
    """One that is in force is in the stamp of the pods that pass, one that has ended in a warning.

    So the tests below meet both.
    """
    debugged = pod(labels={names.RUN: "r", names.KIND: "job", "stage": "debug"})
    answer = examiner.examine(encoded(review(debugged)))
    assert set(exceptions_of(answer)) == {"everywhere"}
    plain = examiner.examine(encoded(review()))
    assert exceptions_of(plain) == {}
    assert any("exception ended ended at 2020" in each for each in plain.response["warnings"])


def exceptions_of(answer: Answer) -> Json:
    """The exceptions in the stamp that the patch writes, with what each took away."""
    (stamp,) = (
        operation["value"] for operation in answer.patch if "annotations" in operation["path"]
    )
    written = stamp[names.PLACEMENT] if isinstance(stamp, dict) else stamp
    found: Json = json.loads(written).get("exceptions", {})
    return found


@fuzz(SHARE * 0.3)
@given(reviews())
def test_a_review_of_any_pod_is_decided(examiner: Examiner, sent: Json) -> None:
    """With 200, and an answer that keeps the rules; so is the pod that its patch makes."""
    assert examiner.examine(encoded(sent)).status == 200


@fuzz(SHARE * 0.4, BATCH)
@given(reviews(), batches(mutations))
def test_a_review_with_changes_at_any_depth_is_answered(
    examiner: Examiner, sent: Json, changes: list[list[Mutation]]
) -> None:
    """Whatever was taken away, put elsewhere, or made of another type."""
    for several in changes:
        changed = sent
        for change in several:
            changed = mutated(changed, change)
        examiner.examine(encoded(changed))


@fuzz(SHARE * 0.3, BATCH)
@given(reviews(), batches(byte_mutations))
def test_a_review_with_damaged_bytes_is_answered(
    examiner: Examiner, sent: Json, changes: list[list[Mutation]]
) -> None:
    """Whatever was cut off, flipped, put in or doubled."""
    for several in changes:
        changed = encoded(sent)
        for change in several:
            changed = damaged(changed, change)
        examiner.examine(changed)


HEAD = (
    b"POST /mutate?timeout=3s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver\r\n"
    b"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n"
)
FRAMES = (
    (b"Content-Length: %d\r\n\r\n", b""),
    (b"Transfer-Encoding: chunked\r\n\r\n%x\r\n", b"\r\n0\r\n\r\n"),
)
# The server is right to wait where it was told of more than came: so long the test waits too.
SILENCE_SECONDS = 0.1
REFUSALS = {400, 404, 405, 411, 413, 414, 415, 431}


@fuzz(SHARE * 0.05)
@given(one(*FRAMES), st.lists(byte_mutations, min_size=1, max_size=3))
def test_a_request_with_damaged_headers_is_refused_or_waited_for(
    server: Served, tally: Tally, frame: tuple[bytes, bytes], changes: list[Mutation]
) -> None:
    """Whatever becomes of its connection."""
    body = encoded(review())
    before, after = frame
    head = HEAD + before % len(body)
    for change in changes:
        head = damaged(head, change)
    connection = server.connect()
    connection.connect()
    connection.sock.sendall(head + body + after)
    connection.sock.settimeout(SILENCE_SECONDS)
    received = b""
    with contextlib.suppress(TimeoutError, ConnectionError, ssl.SSLError):
        while piece := connection.sock.recv(65536):
            received += piece
    connection.close()
    statuses = [int(found) for found in re.findall(rb"HTTP/1.1 (\d{3}) ", received)]
    assert set(statuses) <= {200, *REFUSALS}, received
    tally.count("with damaged headers", statuses[0] if statuses else 0)
