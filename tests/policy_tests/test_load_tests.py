"""Test files are read strictly: a slip in a test must not make it pass."""

from __future__ import annotations

import pytest

from tests.policy_tests.writing import HEAD, WORKER, case
from webhook.errors import InvalidDocuments
from webhook.policy_tests.load_tests import read


def test_documents_are_read_in_their_order() -> None:
    """One file may test several sets; empty documents count as none."""
    first, second = case("{result: placed}"), case("{result: unchanged}")
    documents = read("t", f"---\n{first}---\n# nothing\n---\n{second}".encode()).sound()
    results = [document.model.tests[0].expect.result for document in documents]
    assert results == ["placed", "unchanged"]
    assert documents[0].model.policies == ["."]


def test_additional_needs_of_a_pod_need_not_be_written() -> None:
    """Images, volumes that are mounted, and what a volume is made of."""
    pod = "{spec: {containers: [{name: a, volumeMounts: [{name: v, mountPath: /v}]}], volumes: ["
    for source in ("secret: {}", "configMap: {}", "persistentVolumeClaim: {}"):
        read("t", case("{result: placed}", pod=f"{pod}{{name: w, {source}}}]}}}}").encode()).sound()


def test_nulls_in_a_pod_are_the_api_servers_way() -> None:
    """What kubectl printed can be pasted."""
    pod = "{metadata: {labels: {fairlead.dev/run: r}, creationTimestamp: null}, status: {}}"
    assert read("t", case("{result: placed}", pod=pod).encode()).sound()


def test_a_pod_may_be_written_short_or_whole() -> None:
    """Labels and annotations may stand at the top; both forms are one pod."""
    whole = "{apiVersion: v1, kind: Pod, metadata: {labels: {fairlead.dev/run: r,"
    whole += " fairlead.dev/role: worker}}}"
    assert read("t", case("{result: placed}", pod=whole).encode()).sound()
    assert read("t", case("{result: placed}", pod=WORKER).encode()).sound()


@pytest.mark.parametrize(("content", "fact"), [(b"a: [\n", "not YAML"), (b"\xff", "not UTF-8")])
def test_a_file_that_cannot_be_read_is_an_error(content: bytes, fact: str) -> None:
    """As with any other document; golden/documents has the slips in those that can."""
    with pytest.raises(InvalidDocuments, match=fact):
        read("t", content).sound()


def test_a_test_with_an_error_is_left_out_and_the_others_are_read() -> None:
    """With the places and the paths that they have in the file, whichever errors come first."""
    good = "- {name: NAME, pod: {}, expect: {result: placed}}\n"
    unknown_field = "- {name: typo, pod: {}, expect: {resultt: placed}}\n"
    wrong_pod = "- {name: shape, pod: {spec: {tolerations: all}}, expect: {result: placed}}\n"
    twice = "- {name: a, pod: {}, expect: {result: placed}}\n"
    tests = [good.replace("NAME", "a"), unknown_field, good.replace("NAME", "b"), wrong_pod, twice]
    found = read("t", f"{HEAD}tests:\n{''.join(tests)}".encode())
    (document,) = found.documents
    assert [each.name for each in document.model.tests] == ["a", "b"]
    assert document.left_out == 3
    assert [(each.line, each.path.split(".")[0]) for each in found.errors] == [
        (5, "tests[1]"),
        (7, "tests[3]"),
        (8, "tests[4]"),
    ]
    assert document.locate(("tests", 1))[0] == 6


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}polices: [a]\ntests:\n- {{name: a, pod: {{}}, expect: {{result: placed}}}}\n",
        f"{HEAD}tests:\n- {{name: a, pod: {{}}, expect: {{result: placd}}}}\n",
        (
            f"{HEAD}nodes: [{{nam: x}}]\ntests:\n"
            "- {name: a, pod: {}, expect: {result: placd}}\n"
            "- {name: b, pod: {}, expect: {result: placed}}\n"
        ),
    ],
)
def test_an_error_of_the_document_itself_leaves_nothing_to_run(text: str) -> None:
    found = read("t", text.encode())
    assert found.errors
    assert not found.documents
