"""Read test files to PolicyTests, and build the pods of their cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.errors import InvalidPod
from webhook.placement import pod as pods_of
from webhook.policy import reader
from webhook.policy.document_parser import Forms
from webhook.policy.findings import parse_path
from webhook.policy_tests.policy_test_model import PolicyTest
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.policy_tests.policy_test_model import Pod

    Document: TypeAlias = reader.Document[PolicyTest]

NAME: Final = "test-pod"


def read(file: str, content: bytes) -> reader.Documents[PolicyTest]:
    """Return the documents of one file, in their order; empty ones are skipped.

    A test with an error is left out of its document: the others are still run.
    """
    return reader.read_files({file: content}, _TESTS)


def _in_a_pod(path: Path) -> bool:
    """Return whether a path is within a pod, which may be pasted from kubectl's output."""
    return path[:1] == ("tests",) and path[2:3] == ("pod",)


def _misshapen(document: PolicyTest) -> Iterator[Problem]:
    for at, case in enumerate(document.tests):
        try:
            pods_of.parse_pod(whole(case.pod))
        except InvalidPod as error:
            path: tuple[Any, ...] = (
                "tests",
                at,
                "pod",
                *written_at(error.field, case.pod),
            )
            yield Problem(path, str(error).removeprefix(f"{error.field}: "))


_TESTS: Final = Forms(
    {"PolicyTest": PolicyTest},
    "policy tests",
    nulls=_in_a_pod,
    further=_misshapen,
    apart="tests",
)


def whole(pod: Pod) -> JsonObject:
    """Build the v1.Pod of a test, with the fields that every pod has."""
    metadata: JsonObject = {"name": NAME, **(pod.metadata or {})}
    for key, short in (("labels", pod.labels), ("annotations", pod.annotations)):
        if short is not None:
            metadata[key] = dict(short)
    spec: JsonObject = {"containers": [{"name": "main", "image": "main"}], **(pod.spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def written_at(field: str, pod: Pod) -> Path:
    """Return the path in the test's `pod` of a field of the whole pod: metadata.labels[a] and so
    on.
    """
    steps = parse_path(field)
    short: dict[str, Any] = {"labels": pod.labels, "annotations": pod.annotations}
    if len(steps) > 1 and steps[0] == "metadata" and short.get(str(steps[1])) is not None:
        return steps[1:]
    return steps
