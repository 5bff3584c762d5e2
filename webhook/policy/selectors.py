"""Compiled label selectors, with the expression that does not match."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from webhook.placement.schema.selectors import LabelSelector

Labels: TypeAlias = Mapping[str, str]
Matcher: TypeAlias = Callable[[Labels], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """One expression of a selector; a pair of matchLabels is one with In and a single value.

    NotIn and DoesNotExist hold where the label is missing, as in Kubernetes.
    """

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == "In" and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        if self.values:
            return f"{self.key} {self.operator} [{', '.join(self.values)}]"
        return f"{self.key} {self.operator}"

    def matcher(self) -> Matcher:
        """Return a function that tests whether labels meet this condition."""
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "In" if len(values) == 1:
                (value,) = values
                return lambda labels: labels.get(key) == value
            case "In":
                return lambda labels: labels.get(key) in values
            case "NotIn":
                return lambda labels: labels.get(key) not in values
            case "Exists":
                return lambda labels: key in labels
            case "DoesNotExist":
                return lambda labels: key not in labels


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled LabelSelector: all conditions must hold; without conditions, all labels match.

    Made by `compile_selector`. `matches(labels)` is a field, and not a method, for speed: it is
    called for every policy that the index cannot rule out.
    """

    conditions: tuple[Condition, ...]
    matches: Matcher = field(repr=False, compare=False)

    def failed(self, labels: Labels, noun: str = "label") -> str | None:
        """Return the first condition that does not hold, with the labels' value; None if all
        hold."""
        for condition in self.conditions:
            if not condition.matcher()(labels):
                value = labels.get(condition.key)
                return f"{condition}: {f'no such {noun}' if value is None else f'it is {value!r}'}"
        return None

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that are read."""
        return frozenset(condition.key for condition in self.conditions)

    @property
    def tested(self) -> frozenset[tuple[str, str | None]]:
        """All values that a key is compared with, as pairs.

        (key, None) if it matters whether the key is present. For In and NotIn, a value that no
        condition names is like a missing one.
        """
        return frozenset(
            (condition.key, value)
            for condition in self.conditions
            for value in condition.values or (None,)
        )


def compile_selector(selector: LabelSelector) -> Selector:
    """Return the selector in a form that is quick to evaluate. An empty one selects everything."""
    pairs = (selector.match_labels or {}).items()
    conditions = (
        *(Condition(key, "In", (value,)) for key, value in sorted(pairs)),
        *(
            Condition(item.key, item.operator, tuple(dict.fromkeys(item.values or ())))
            for item in selector.match_expressions or ()
        ),
    )
    return Selector(conditions, _all_of([condition.matcher() for condition in conditions]))


def _all_of(matchers: list[Matcher]) -> Matcher:
    match matchers:
        case []:
            return lambda _: True
        case [only]:
            return only
        case [first, second]:
            return lambda labels: first(labels) and second(labels)
    together = tuple(matchers)

    def every(labels: Labels) -> bool:
        # A loop: all() over a generator takes twice as long.
        for matcher in together:  # noqa: SIM110 for that reason
            if not matcher(labels):
                return False
        return True

    return every
