"""Test files are read strictly: a slip in a test must not make it pass."""

from __future__ import annotations

import pytest

from tests.policy_tests.writing import WORKER, case
from webhook.errors import InvalidDocuments
from webhook.policy_tests.load_tests import parse


def test_documents_are_read_in_their_order() -> None:
    """One file may test several sets; empty documents count as none."""
    first, second = case("{result: placed}"), case("{result: unchanged}")
    documents = parse("t", f"---\n{first}---\n# nothing\n---\n{second}".encode())
    results = [document.model.tests[0].expect.result for document in documents]
    assert results == ["placed", "unchanged"]
    assert documents[0].model.policies == ["."]


def test_additional_needs_of_a_pod_need_not_be_written() -> None:
    """Images, volumes that are mounted, and what a volume is made of."""
    pod = "{spec: {containers: [{name: a, volumeMounts: [{name: v, mountPath: /v}]}], volumes: ["
    for source in ("secret: {}", "configMap: {}", "persistentVolumeClaim: {}"):
        parse("t", case("{result: placed}", pod=f"{pod}{{name: w, {source}}}]}}}}").encode())


def test_nulls_in_a_pod_are_the_api_servers_way() -> None:
    """What kubectl printed can be pasted."""
    pod = "{metadata: {labels: {fairlead.dev/run: r}, creationTimestamp: null}, status: {}}"
    assert parse("t", case("{result: placed}", pod=pod).encode())


def test_a_pod_may_be_written_short_or_whole() -> None:
    """Labels and annotations may stand at the top; both forms are one pod."""
    whole = "{apiVersion: v1, kind: Pod, metadata: {labels: {fairlead.dev/run: r,"
    whole += " fairlead.dev/role: worker}}}"
    assert parse("t", case("{result: placed}", pod=whole).encode())
    assert parse("t", case("{result: placed}", pod=WORKER).encode())


@pytest.mark.parametrize(("content", "fact"), [(b"a: [\n", "not YAML"), (b"\xff", "not UTF-8")])
def test_a_file_that_cannot_be_read_is_an_error(content: bytes, fact: str) -> None:
    """As with any other document; golden/documents has the slips in those that can."""
    with pytest.raises(InvalidDocuments, match=fact):
        parse("t", content)
