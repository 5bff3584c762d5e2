"""Compute the condition InForce of a policy or an exception: whether its pods are sent.

Each entry of the webhook configuration selects pods, so one that is not in force concerns some
policies only. What is said of a policy is proved for every pod that it may match; without a proof,
an entry concerns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
from pydantic import ValidationError

from webhook.crd.conditions import ConditionUpdate
from webhook.interception import MUTATING
from webhook.judgement.entry_states import NARROWED, NOT_READ
from webhook.placement.label_values import expressions, negated
from webhook.policy.match_model import Match
from webhook.policy.matched_pods import MatchedPods
from webhook.recent import Recent
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.judgement.entry_states import EntryState, Narrowing

    Json = Mapping[str, Any]

IN_FORCE: Final = "InForce"
INTERCEPTED: Final = "Intercepted"
NOT_INTERCEPTED: Final = "NotIntercepted"
NOT_SELECTED: Final = "NotSelected"

_BLOCKS: Final = {"namespaceSelector": "namespaceSelector", "objectSelector": "podSelector"}
_EVERY_POD: Final = MatchedPods(Match())
_MOST_NAMED: Final = 3
# Objects whose condition is remembered, and bytes of them: a set of a thousand policies is large.
_CACHED_CONDITIONS: Final = 4096
_MOST_BYTES: Final = 16 * 2**20


class _Object(NamedTuple):
    """What a policy or an exception matches; `rollout`: where a policy is enforced."""

    match: MatchedPods
    exclude: Sequence[MatchedPods] = ()
    rollout: MatchedPods | None = None

    def may_match(self, pods: MatchedPods) -> bool:
        return not (
            self.match.is_disjoint(pods)
            or any(exclusion.covers(pods) for exclusion in self.exclude)
        )

    def may_change(self, pods: MatchedPods) -> bool:
        return self.may_match(pods) and not (self.rollout and self.rollout.is_disjoint(pods))


class _Entry(NamedTuple):
    """An entry: the pods that it sends, does not send although it should, and leaves out on
    purpose."""

    state: EntryState
    sent: Sequence[MatchedPods]
    lost: Sequence[MatchedPods]
    left_out: Sequence[tuple[str, MatchedPods]]


class SentPods:
    """Which pods are sent to the webhook, by the states of its entries."""

    def __init__(self, states: Iterable[EntryState]) -> None:
        self._entries = [_entry(state) for state in states if state.kind == MUTATING]
        self._known: Recent[bytes, ConditionUpdate] = Recent(_CACHED_CONDITIONS, _MOST_BYTES)

    def condition(self, text: bytes) -> ConditionUpdate:
        """Return the condition of a policy or an exception that is accepted; `text` is JSON.

        If its match cannot be read, every entry concerns it.
        """
        condition_update = self._known.get(text)
        if condition_update is None:
            condition_update = self._condition(_read(text))
            self._known.put(text, condition_update, len(text))
        return condition_update

    def _condition(self, about: _Object | None) -> ConditionUpdate:
        concerning = [
            entry.state
            for entry in self._entries
            if any(about is None or about.may_match(pods) for pods in entry.lost)
        ]
        if concerning:
            what = _listed((state.entry, state.message) for state in concerning)
            if all(state.reason == NOT_READ for state in concerning):
                return ConditionUpdate(IN_FORCE, "Unknown", NOT_READ, what)
            return ConditionUpdate(
                IN_FORCE, "False", NOT_INTERCEPTED, f"pods are not placed: {what}"
            )
        notes = _listed(
            (entry.state.entry, what)
            for entry in self._entries
            for what, pods in entry.left_out
            if about is None or about.may_match(pods)
        )
        if about and not any(
            about.may_change(pods) for entry in self._entries for pods in entry.sent
        ):
            what = "no entry of the webhook configuration selects its pods"
            what += f": {notes}" if notes else ""
            return ConditionUpdate(IN_FORCE, "False", NOT_SELECTED, what)
        return ConditionUpdate(IN_FORCE, "True", INTERCEPTED, notes)


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    """Return what was found, each text once, after the entries that it is about."""
    entries: dict[str, list[str]] = {}
    for entry, what in pairs:
        entries.setdefault(what, []).append(entry)
    return first_few(
        [f"{first_few(some, _MOST_NAMED)}: {what}" for what, some in entries.items()], _MOST_NAMED
    )


def _read(text: bytes) -> _Object | None:
    """Return what an object matches; None if this version cannot read it."""
    try:
        spec = orjson.loads(text)["spec"]
        rollout = spec.get("rollout")
        return _Object(
            _match(spec.get("match") or {}),
            [_match(exclusion) for exclusion in spec.get("exclude") or ()],
            _match({"namespaces": rollout["namespaces"]}) if rollout else None,
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _match(block: Json) -> MatchedPods:
    return MatchedPods(Match.model_validate(block))


def _entry(state: EntryState) -> _Entry:
    sent = [_selected(state.stored)] if state.stored is not None else []
    lost: list[MatchedPods] = []
    if state.reason == NARROWED:
        lost += [
            _without(state, narrowing) for narrowing in state.narrowings if not narrowing.meant
        ]
    elif state.reason:
        lost.append(_selected(state.wanted))
    left_out = [
        (narrowing.what, _without(state, narrowing))
        for narrowing in state.narrowings
        if narrowing.meant
    ]
    return _Entry(state, sent, lost, left_out)


def _without(state: EntryState, narrowing: Narrowing) -> MatchedPods:
    """Return the pods that an entry should send, and does not because of a narrowing."""
    more = narrowing.expression and (narrowing.selector, negated(narrowing.expression))
    return _selected(state.wanted, more)


def _selected(selectors: Json | None, more: tuple[str, Any] | None = None) -> MatchedPods:
    """Return the pods that an entry's selectors, and one expression more, select.

    Every pod, if the selectors are not known, or this version cannot read them.
    """
    if selectors is None:
        return _EVERY_POD
    block = {
        _BLOCKS[name]: {
            "matchExpressions": [
                *expressions(selectors.get(name) or {}),
                *([more[1]] if more and more[0] == name else ()),
            ]
        }
        for name in _BLOCKS
    }
    try:
        return _match(block)
    except ValidationError:
        return _EVERY_POD
