"""Test files to documents: every PolicyTest in them, or everything that is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.errors import InvalidPod
from webhook.placement import pod as pods_of
from webhook.policy import reader
from webhook.policy.forms import Forms
from webhook.policy_tests import pods
from webhook.policy_tests.model import PolicyTest
from webhook.strict import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.policy.findings import Path

    Document: TypeAlias = reader.Document[PolicyTest]


def parse(file: str, content: bytes) -> tuple[Document, ...]:
    """The documents of one file, in their order; empty ones are skipped.

    Raises InvalidDocuments with every finding.
    """
    return reader.read({file: content}, _TESTS).sound()


def _in_a_pod(path: Path) -> bool:
    """Whether a path is within a pod, which may be pasted from kubectl's output."""
    return path[:1] == ("tests",) and path[2:3] == ("pod",)


def _misshapen(document: PolicyTest) -> Iterator[Problem]:
    """Pods whose placement fields have no pod's shape."""
    for at, case in enumerate(document.tests):
        try:
            pods_of.read(pods.whole(case.pod))
        except InvalidPod as error:
            path: tuple[Any, ...] = ("tests", at, "pod", *pods.written_at(error.field, case.pod))
            yield Problem(path, str(error).removeprefix(f"{error.field}: "))


_TESTS: Final = Forms(
    {"PolicyTest": PolicyTest}, "policy tests", nulls=_in_a_pod, further=_misshapen
)
