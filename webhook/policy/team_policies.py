"""Why a team's policy has no effect.

A team may write only in its namespace, so nothing that it writes is an error for others: a policy
that cannot apply has no effect, with a warning, and no class or policy of an admin has to wait.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.policy.findings import Kind
from webhook.policy.model import NamespacedPlacementPolicy
from webhook.policy.policy_set import content, hash_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.policy.findings import Finding, Path
    from webhook.policy.model import PlacementPolicy
    from webhook.policy.policy_documents import Document

MOST_IN_NAMESPACE: Final = 10
# Of the document's kind, name and spec as JSON.
MOST_BYTES: Final = 8 * 1024


class Written(NamedTuple):
    """A label or an annotation that a PlacementPolicy writes, with the policy's name."""

    members: str
    key: str
    policy: str


def of_team(document: Document) -> bool:
    """Return whether the document is a team's policy."""
    return isinstance(document.model, NamespacedPlacementPolicy)


def inert(
    documents: Sequence[Document],
    class_names: Collection[str],
    written: Collection[Written],
    selected: Mapping[int, Sequence[tuple[str, str, Path]]],
) -> Iterator[Finding]:
    """Yield why teams' policies have no effect, each about the policy's name.

    `selected` are the labels and annotations that a document selects by, each with its path, by
    the document's identity.
    """
    policy_by_key = {(members, key): policy for members, key, policy in written}
    counts: Counter[str] = Counter()
    for document in sorted(documents, key=lambda document: document.model.name):
        reasons = [*_reasons(document, class_names, policy_by_key, selected[id(document)])]
        namespace, _, _ = document.model.name.partition("/")
        counts[namespace] += 1
        if counts[namespace] > MOST_IN_NAMESPACE:
            most = f"only the first {MOST_IN_NAMESPACE} of a namespace by name have an effect"
            reasons.append((("metadata", "name"), most))
        for path, reason in reasons:
            what = f"the policy has no effect: {reason}"
            name = document.model.name
            yield document.finding(path, what, "warning", about=name, kind=Kind.INERT)


def _reasons(
    document: Document,
    class_names: Collection[str],
    policy_by_key: Mapping[tuple[str, str], str],
    selected: Sequence[tuple[str, str, Path]],
) -> Iterator[tuple[Path, str]]:
    model = document.model
    named = model.policy.class_names() if isinstance(model, NamespacedPlacementPolicy) else ()
    for path, name in named:
        if name not in class_names:
            yield path, f"there is no capacity class {name!r}"
    for members, key, path in selected:
        if policy := policy_by_key.get((members, key)):
            yield path, f"policy {policy} writes {key}, and so decides which policies match"
    size = len(document.derive(content_of))
    if size > MOST_BYTES:
        yield (), f"it has {size} bytes as JSON; at most {MOST_BYTES} are allowed"


def content_of(document: Document) -> bytes:
    """Return what counts of a document, for `derive`."""
    return content(document.model)


def policies_of(
    documents: Sequence[Document], findings: Sequence[Finding]
) -> list[PlacementPolicy]:
    """Return the teams' policies as policies; `findings` tell which of them have no effect."""
    without_effect = {finding.about for finding in findings if finding.kind is Kind.INERT}
    return [
        model.inert if model.name in without_effect else model.policy
        for document in documents
        if isinstance(model := document.model, NamespacedPlacementPolicy)
    ]


def hashes(documents: Sequence[Document]) -> dict[str, str]:
    """Return the hash of what may decide in each namespace with teams' policies, and under "" of
    what may in all others; nothing if there are none."""
    if not any(map(of_team, documents)):
        return {}
    by_namespace: dict[str, list[bytes]] = {}
    for document in documents:
        namespace = document.model.name.partition("/")[0] if of_team(document) else ""
        by_namespace.setdefault(namespace, []).append(document.derive(content_of))
    shared = hash_of(by_namespace.pop("", ()))
    by_team = {
        namespace: hash_of([shared.encode(), *contents])
        for namespace, contents in by_namespace.items()
    }
    return {"": shared, **by_team}
