"""From documents to a policy set, or to everything that is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.errors import InvalidDocuments
from webhook.names import CLASS_KIND, POLICY_KIND
from webhook.policy import checks, source
from webhook.policy.exception_model import PlacementException
from webhook.policy.model import PlacementPolicy
from webhook.policy.policy_set import Compiler, PolicySet, content_hash

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.capacity import CapacityClass
    from webhook.policy.findings import Finding
    from webhook.policy.model import PolicyDocument
    from webhook.policy.reader import Documents


class Loaded(NamedTuple):
    """A policy set, and the warnings that go with it, ordered by place."""

    policies: PolicySet
    warnings: tuple[Finding, ...]


def load(files: Mapping[str, bytes]) -> Loaded:
    """The policy set of all documents in the files, given by name.

    Raises InvalidDocuments with every finding, warnings included, if one of them is an error.
    """
    return compiled(source.parse(files))


def compiled(documents: Documents[PolicyDocument], compiler: Compiler | None = None) -> Loaded:
    """The policy set of documents that were read, from wherever. Raises as `load` does.

    `compiler` may remember what it compiled for the set before this one.
    """
    classes, findings = judged(documents)
    if any(finding.severity == "error" for finding in findings):
        raise InvalidDocuments(findings)
    good = [document.model for document in documents.documents]
    policies = [model for model in good if isinstance(model, PlacementPolicy)]
    exceptions = [model for model in good if isinstance(model, PlacementException)]
    policy_set = PolicySet(policies, classes, content_hash(good), exceptions, compiler)
    return Loaded(policy_set, tuple(findings))


def judged(
    documents: Documents[PolicyDocument],
) -> tuple[dict[str, CapacityClass], list[Finding]]:
    """Every class that can be compiled, by name, and all that is found, ordered by place."""
    good = documents.documents
    # A class that is there but wrong is reported at the class, and not where it is named too.
    named = documents.broken | {(d.model.kind, d.model.name) for d in good}
    known = {name for kind, name in named if kind == CLASS_KIND}
    classes, wrong_classes = checks.compiled_classes(good, known)
    findings = sorted(
        [
            *documents.findings,
            *checks.collisions(good),
            *wrong_classes,
            *checks.unknown_classes(good, known),
            *checks.written_and_read(good),
            *checks.unknown_policies(good, {name for kind, name in named if kind == POLICY_KIND}),
        ]
    )
    return classes, findings
