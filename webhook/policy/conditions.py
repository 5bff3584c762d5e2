"""A policy's match and exclude blocks, compiled to be asked of one pod after the other."""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.policy.match_model import Match
    from webhook.policy.subject import Subject


class Condition(NamedTuple):
    """One condition: its name in policy files, the test, and what the pod has instead."""

    name: str
    holds: Callable[[Subject], bool]
    instead: Callable[[Subject], str]


class Block(NamedTuple):
    """A block of conditions which must all hold."""

    conditions: tuple[Condition, ...]

    def holds(self, subject: Subject) -> bool:
        """Whether every condition holds."""
        for condition in self.conditions:  # noqa: SIM110  a generator costs twice as much
            if not condition.holds(subject):
                return False
        return True

    def failed(self, subject: Subject) -> str | None:
        """The first condition that does not hold, and what the pod has instead; or None."""
        for condition in self.conditions:
            if not condition.holds(subject):
                return f"{condition.name}: {condition.instead(subject)}"
        return None


def globs(patterns: Sequence[str]) -> re.Pattern[str]:
    """One pattern that matches what any of the globs does (`*` any text, `?` one character)."""
    return _compiled("|".join(fnmatch.translate(pattern) for pattern in patterns))


# Half of a set's compiling, when one policy of a thousand has changed; Python remembers 512.
@functools.lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def is_glob(pattern: str) -> bool:
    """Whether it may match more than itself."""
    return "*" in pattern or "?" in pattern


def block(match: Match) -> Block:
    """The compiled block."""
    return Block(
        (*_places(match), *_identities(match), *_contents(match)),
    )


def _places(match: Match) -> list[Condition]:
    result = []
    if match.namespaces:
        pattern = globs(match.namespaces)
        wanted = ", ".join(match.namespaces)
        result.append(
            Condition(
                "namespaces",
                lambda s: pattern.match(s.namespace) is not None,
                lambda s: f"{s.namespace!r} is none of {wanted}",
            )
        )
    if match.namespace_selector is not None:
        of_namespace = compile_selector(match.namespace_selector)
        result.append(
            Condition(
                "namespaceSelector",
                lambda s: of_namespace.matches(s.namespace_labels),
                lambda s: str(of_namespace.failed(s.namespace_labels)),
            )
        )
    if match.pod_selector is not None:
        of_pod = compile_selector(match.pod_selector)
        result.append(
            Condition(
                "podSelector",
                lambda s: of_pod.matches(s.labels),
                lambda s: str(of_pod.failed(s.labels)),
            )
        )
    return result


def _identities(match: Match) -> list[Condition]:
    result = []
    for name, wanted, value in (
        ("kinds", match.kinds, lambda s: s.identity.kind),
        ("frameworks", match.frameworks, lambda s: s.identity.framework),
        ("roles", match.roles, lambda s: s.identity.role),
        ("replicaIndexes", match.replica_indexes, lambda s: s.identity.replica_index),
    ):
        if wanted:
            result.append(_one_of(name, wanted, value))
    if match.coordinator is not None:
        leads = match.coordinator
        result.append(
            Condition(
                "coordinator",
                lambda s: s.identity.coordinator is leads,
                lambda s: "the pod leads its run" if s.identity.coordinator else "it does not lead",
            )
        )
    return result


def _one_of(name: str, wanted: Sequence[object], value: Callable[[Subject], object]) -> Condition:
    allowed = frozenset(wanted)
    text = ", ".join(map(str, wanted))

    def instead(subject: Subject) -> str:
        seen = value(subject)
        return f"the pod says none, wanted {text}" if seen is None else f"{seen} is none of {text}"

    return Condition(name, lambda s: value(s) in allowed, instead)


def _contents(match: Match) -> list[Condition]:
    result = []
    if match.resources:
        result.append(_some_of("resources", match.resources, lambda s: s.resources))
    if match.volumes:
        result.append(_some_of("volumes", match.volumes, lambda s: s.volumes))
    return result


def _some_of(
    name: str, wanted: Sequence[str], values: Callable[[Subject], frozenset[str]]
) -> Condition:
    allowed = frozenset(wanted)
    text = ", ".join(wanted)
    return Condition(
        name,
        lambda s: not allowed.isdisjoint(values(s)),
        lambda s: f"the pod has {', '.join(sorted(values(s))) or 'none'}, wanted {text}",
    )
