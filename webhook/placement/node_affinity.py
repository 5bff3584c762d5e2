"""Required node affinity: AND into every term, prune, satisfiability.

Terms are ORed, the expressions of one are ANDed, and a term without any matches no node
(v1.NodeSelector). A disjunction of no terms admits nothing; "no condition" is therefore None, never
an empty list.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook import names
from webhook.errors import FairleadError
from webhook.foreign_text import split_names
from webhook.placement import label_values

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import Requirement, Term

# A conjunction multiplies terms, and a pod's author chooses how many there are. Above this it is
# refused rather than computed: the largest negation of a class has 64 terms, and a pod that brings
# more than a handful of its own is far from usual.
MAX_TERMS = 1024
MAX_REQUIREMENTS = 16_384
# Eight times the names of the nodes of the largest cluster that Kubernetes is made for (5,000), and
# room: a pod may name each of them beside a class of eight shapes.
MAX_VALUES = 65_536
# The most nodes that a pod avoids by its annotation.
MOST_AVOIDED: Final = 50
# The most that are read of that annotation.
_MOST_NAMED: Final = 200
# Pairs of terms that are compared without preparing anything: nearly every pod has fewer.
_PAIRS_UNPREPARED: Final = 64


class TooManyTerms(FairleadError):
    """A conjunction of required node affinity would have more than MAX_TERMS terms, or more than
    MAX_REQUIREMENTS requirements or MAX_VALUES values in all of them."""

    def __init__(self, count: int, what: str, limit: int) -> None:
        super().__init__(f"required node affinity would come to {count} {what}, over {limit}")


def _check_size(
    kept: Sequence[Term], multiplied: Sequence[Term] = (), condition: Sequence[Term] = ()
) -> None:
    """Raise TooManyTerms if the kept and the multiplied terms could exceed the limits.

    A result that passes here also passes as input, when all its terms are kept.
    """
    count = len(kept) + len(multiplied) * len(condition)
    if count > MAX_TERMS:
        raise TooManyTerms(count, "terms", MAX_TERMS)
    requirements = _requirements(kept) + _requirements(multiplied) * len(condition)
    requirements += _requirements(condition) * len(multiplied)
    if requirements > MAX_REQUIREMENTS:
        raise TooManyTerms(requirements, "requirements", MAX_REQUIREMENTS)
    values = _values(kept) + _values(multiplied) * len(condition)
    values += _values(condition) * len(multiplied)
    if values > MAX_VALUES:
        raise TooManyTerms(values, "values", MAX_VALUES)


def _values(terms: Sequence[Term]) -> int:
    return sum(
        len(requirement.get("values") or ())
        for term in terms
        for requirement in term.get("matchExpressions") or ()
    )


def _requirements(terms: Sequence[Term]) -> int:
    return sum(len(term.get("matchExpressions") or ()) for term in terms)


def avoided_nodes(annotations: Mapping[str, str]) -> list[str]:
    """Return the names in the annotation AVOID_NODES of a pod, each once, valid or not.

    At most 200: more than MOST_AVOIDED, and few enough to compare.
    """
    text = annotations.get(names.AVOID_NODES)
    return split_names(text, _MOST_NAMED) if text else []


def is_empty(term: Term) -> bool:
    """Return whether the term has no requirement at all, and so matches no node."""
    return not term.get("matchExpressions") and not term.get("matchFields")


def both(term: Term, other: Term) -> Term:
    """Return the conjunction of two terms. Identical expressions are not repeated."""
    result: Term = {}
    expressions = _union(term.get("matchExpressions"), other.get("matchExpressions"))
    if expressions:
        result["matchExpressions"] = expressions
    fields = _union(term.get("matchFields"), other.get("matchFields"))
    if fields:
        result["matchFields"] = fields
    return result


def _union(
    requirements: Sequence[Requirement] | None, other: Sequence[Requirement] | None
) -> list[Requirement]:
    result = list(requirements or ())
    result.extend(r for r in other or () if r not in result)
    return result


def contains(term: Term, part: Term) -> bool:
    """Return whether `term` has every requirement of `part`, and so implies it."""
    return _subset(part.get("matchExpressions"), term.get("matchExpressions")) and _subset(
        part.get("matchFields"), term.get("matchFields")
    )


def _subset(small: Sequence[Requirement] | None, large: Sequence[Requirement] | None) -> bool:
    return not small or all(r in (large or ()) for r in small)


def implies(term: Term, condition: Sequence[Term]) -> bool:
    """Return whether `term` contains one of the condition's terms, and so implies the condition."""
    return any(contains(term, part) for part in condition)


def implied(terms: Sequence[Term], condition: Sequence[Term]) -> list[bool]:
    if len(terms) * len(condition) <= _PAIRS_UNPREPARED:
        return [implies(term, condition) for term in terms]
    parts = _sets_of(condition)
    if not all(parts):
        return [True] * len(terms)
    index = _by_rarest(parts)
    return [
        any(part <= whole for requirement in whole for part in index.get(requirement, ()))
        for whole in _sets_of(terms)
    ]


_Parts: TypeAlias = "frozenset[Hashable]"


def _by_rarest(parts: Sequence[_Parts]) -> Mapping[Hashable, Sequence[_Parts]]:
    """Return each part by its rarest requirement, where it is looked for: all pairs would take a
    second."""
    counted = Counter(requirement for part in parts for requirement in part)
    parts_by_rarest: dict[Hashable, list[_Parts]] = {}
    for part in parts:
        parts_by_rarest.setdefault(min(part, key=counted.__getitem__), []).append(part)
    return parts_by_rarest


def _sets_of(terms: Iterable[Term]) -> list[_Parts]:
    """Return the requirements of each term in a form that compares as JSON does."""
    hashable = _hashing()
    return [
        frozenset(
            (
                *(
                    (False, hashable(requirement))
                    for requirement in term.get("matchExpressions") or ()
                ),
                *((True, hashable(requirement)) for requirement in term.get("matchFields") or ()),
            )
        )
        for term in terms
    ]


def _hashing() -> Callable[[Requirement], Hashable]:
    """Return a function as _hashable, for requirements of terms that stay as they are meanwhile.

    The terms of a conjunction share the requirements of its conditions.
    """
    hash_by_id: dict[int, Hashable] = {}

    def hashable(requirement: Requirement) -> Hashable:
        if id(requirement) not in hash_by_id:
            hash_by_id[id(requirement)] = _hashable(requirement)
        return hash_by_id[id(requirement)]

    return hashable


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict):
        return frozenset((key, _hashable(member)) for key, member in value.items())
    if isinstance(value, list):
        # Mostly of a requirement's values, which are strings.
        whole = tuple(value)
        return (
            whole
            if all(element.__class__ is str for element in whole)
            else tuple(map(_hashable, whole))
        )
    scalar: Hashable = value
    return scalar


def narrowed(terms: Sequence[Term], condition: Sequence[Term]) -> list[Term]:
    """`terms` AND `condition`, by the cross product of their terms.

    Empty terms stay: they match no node, and adding to them would make them match some. A term
    that implies the condition already stays as it is, which makes this idempotent.

    Raises TooManyTerms.
    """
    # Before each is examined, which costs as much.
    _check_size(terms)
    stays = [
        is_empty(term) or implying
        for term, implying in zip(terms, implied(terms, condition), strict=True)
    ]
    kept = [term for term, as_it_is in zip(terms, stays, strict=True) if as_it_is]
    multiplied = [term for term, as_it_is in zip(terms, stays, strict=True) if not as_it_is]
    _check_size(kept, multiplied, condition)
    result: list[Term] = []
    for term, as_it_is in zip(terms, stays, strict=True):
        result.extend([term] if as_it_is else (both(term, part) for part in condition))
    return _different(result)


def _different(terms: list[Term]) -> list[Term]:
    if len(terms) ** 2 <= _PAIRS_UNPREPARED:
        return [term for at, term in enumerate(terms) if term not in terms[:at]]
    hashable = _hashing()
    term_by_content: dict[Hashable, Term] = {}
    for term in terms:
        # Both lists are given, or None.
        parts: Any = term.items()
        same = frozenset((name, part and tuple(map(hashable, part))) for name, part in parts)
        term_by_content.setdefault(same, term)
    return list(term_by_content.values())


def conjunction(conditions: Iterable[Sequence[Term]]) -> list[Term] | None:
    """Return the conjunction of all conditions, without redundant terms; None if there are none."""
    result: list[Term] | None = None
    for condition in conditions:
        result = list(condition) if result is None else narrowed(result, condition)
    return None if result is None else without_redundant(result)


def without_redundant(terms: Sequence[Term]) -> list[Term]:
    """Drop terms that contain another one: A or (A and B) is A."""
    if len(terms) ** 2 > _PAIRS_UNPREPARED:
        return _without_redundant(terms)
    return [
        term
        for at, term in enumerate(terms)
        if not any(
            at != other_at
            and contains(term, other)
            and not (contains(other, term) and at < other_at)
            and not is_empty(other)
            for other_at, other in enumerate(terms)
        )
    ]


def _without_redundant(terms: Sequence[Term]) -> list[Term]:
    sets = _sets_of(terms)
    first = {parts: at for at, parts in reversed([*enumerate(sets)]) if parts}
    index = _by_rarest([*first])
    return [
        term
        for at, (term, whole) in enumerate(zip(terms, sets, strict=True))
        if not whole
        or (
            first[whole] == at
            and not any(
                part < whole for requirement in whole for part in index.get(requirement, ())
            )
        )
    ]


def _by_key(term: Term, selector: Mapping[str, str]) -> Iterator[tuple[str, list[Requirement]]]:
    groups: dict[str, list[Requirement]] = {}
    for requirement in term.get("matchExpressions") or ():
        groups.setdefault(requirement.get("key", ""), []).append(requirement)
    for key, group in groups.items():
        if key in selector:
            group.append({"key": key, "operator": "In", "values": [selector[key]]})
        yield key, group


def contradiction(term: Term, selector: Mapping[str, str]) -> str | None:
    """Return the label or field for which no value meets both term and nodeSelector, or None.

    None, too, for a term that the API server refuses.
    """
    if is_empty(term):
        return "an empty term"
    if _is_refused(term):
        return None  # the API server must see it
    for key, group in _by_key(term, selector):
        # One expression alone contradicts itself only by an empty or unreadable list of values.
        if not label_values.satisfiable(group):
            return key
    fields: dict[str, list[Requirement]] = {}
    for requirement in term.get("matchFields") or ():
        fields.setdefault(requirement.get("key", ""), []).append(requirement)
    for key, group in fields.items():
        # A node always has its fields, so absence is not possible.
        present: Requirement = {"key": key, "operator": "Exists"}
        if not label_values.satisfiable([*group, present]):
            return key
    return None


def _is_refused(term: Term) -> bool:
    """Return whether the API server refuses the term for the number of values or for a field.

    Source: ValidateNodeFieldSelectorRequirement of k8s.io/kubernetes/pkg/apis/core/validation.
    """
    return any(
        not label_values.takes(requirement.get("operator"), len(requirement.get("values") or ()))
        for requirement in term.get("matchExpressions") or ()
    ) or any(
        requirement.get("key") != "metadata.name"
        or requirement.get("operator") not in label_values.LIST_OPERATORS
        or len(requirement.get("values") or ()) != 1
        for requirement in term.get("matchFields") or ()
    )


def satisfiable(terms: Sequence[Term] | None, selector: Mapping[str, str]) -> bool:
    """Return whether a node could meet the nodeSelector and one of the terms (None: no
    condition)."""
    return terms is None or any(contradiction(term, selector) is None for term in terms)


def pruned(terms: Sequence[Term], selector: Mapping[str, str]) -> list[Term]:
    """`terms` without those that no node can meet; empty ones stay as they are."""
    return [t for t in terms if is_empty(t) or contradiction(t, selector) is None]


def keys(terms: Iterable[Term]) -> frozenset[str]:
    return frozenset(
        requirement.get("key", "")
        for term in terms
        for requirement in term.get("matchExpressions") or ()
    )


def only_node(terms: Sequence[Term] | None) -> str:
    """Return the name of the one node that every term names, as the DaemonSet controller writes it;
    or "".

    Source: k8s.io/kubernetes/pkg/controller/daemon/util: ReplaceDaemonSetPodNodeNameNodeAffinity.
    """
    named: set[str] = set()
    for term in terms or ():
        fields = [
            requirement.get("values") or []
            for requirement in term.get("matchFields") or ()
            if requirement.get("key") == "metadata.name" and requirement.get("operator") == "In"
        ]
        if not any(len(values) == 1 for values in fields):
            return ""
        named.update(value for values in fields for value in values if len(values) == 1)
    return named.pop() if len(named) == 1 else ""


def failed(term: Term, labels: Mapping[str, str], name: str) -> Requirement | None:
    """Return the first requirement that a node with these labels and this name does not meet, or
    None.

    Call `is_empty` first: an empty term has no failing requirement, but matches no node.
    """
    for requirement in term.get("matchExpressions") or ():
        if not label_values.holds(requirement, labels.get(requirement.get("key", ""))):
            return requirement
    for requirement in term.get("matchFields") or ():
        value = name if requirement.get("key") == "metadata.name" else None
        if value is None or not label_values.holds(requirement, value):
            return requirement
    return None


def holds(terms: Iterable[Term], labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node with these labels and this name meets one of the terms."""
    return any(not is_empty(term) and failed(term, labels, name) is None for term in terms)
