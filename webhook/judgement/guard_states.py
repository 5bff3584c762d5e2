"""Whether each guard of an installation is in force: stored, bound, as strict as this version's.

The controller and `fairlead doctor` both ask this. A guard is compared part by part with the one
that this version makes. What only rejects more is no difference, and neither are texts of messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.guards import (
    capacity_guard,
    doctor_guard,
    is_exemption,
    node_name_guard,
    stamp_guard,
)
from webhook.interception import GUARD
from webhook.judgement.entry_states import ABSENT, NARROWED, EntryState, narrowings
from webhook.placement.label_values import expressions
from webhook.shortening import first_few
from webhook.sources.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Json = Mapping[str, Any]

# Reasons for which a guard is not in force, beside those of entries.
NOT_BOUND: Final = "NotBound"
CHANGED: Final = "Changed"

_MOST_NAMED: Final = 3
_ALLOW_EXEMPTIONS: Final = (names.TOLERATIONS_GUARD, names.NODE_NAMES_GUARD)
_AND: Final = " && "


def guard_states(
    guards: Iterable[str],
    policies: Mapping[str, Json],
    bindings: Sequence[Json],
    expected: Sequence[Json],
    whole: Mapping[str, Mapping[str, str]],
    authors: Json | None,
) -> list[EntryState]:
    """Return the states of the guards of these names. One of an unknown name only has to exist.

    policies: ValidatingAdmissionPolicies by name; bindings: of any of them
    expected: the entries for pods; guards of pods have a binding for each
    authors: the guard of run authors, which depends on what the controller creates
    """
    states = []
    for name in guards:
        policy_bindings = [
            binding for binding in bindings if binding["spec"].get("policyName") == name
        ]
        reason, message = _wrong(
            name, policies.get(name), policy_bindings, expected, whole, authors
        )
        states.append(EntryState(name, GUARD, reason, message))
    return states


def _wrong(
    name: str,
    stored: Json | None,
    bindings: Sequence[Json],
    expected: Sequence[Json],
    whole: Mapping[str, Mapping[str, str]],
    authors: Json | None,
) -> tuple[str, str]:
    """Return the reason and the message; empty if the guard is in force."""
    if stored is None:
        return ABSENT, f"there is no ValidatingAdmissionPolicy {name}"
    expected_policy = _own(name, bindings, authors)
    acts = {"Deny"} if expected_policy and name != names.STAMP_GUARD else {"Deny", "Warn"}
    acting = [binding for binding in bindings if acts & _actions(binding)]
    if not acting:
        return NOT_BOUND, f"no binding of it {'denies' if len(acts) == 1 else 'denies or warns'}"
    if narrowed := [*_narrowed(name, acting, expected, whole)]:
        what = first_few(narrowed, _MOST_NAMED)
        return NARROWED, f"less is selected than was installed by binding {what}"
    if name == names.STAMP_GUARD and (lacking := _unguarded(expected, acting, whole)):
        return NARROWED, f"no binding of it covers the pods of {first_few(lacking, _MOST_NAMED)}"
    if expected_policy and (parts := changed_parts(name, stored["spec"], expected_policy["spec"])):
        what = f"its {', '.join(parts)} are not those of this version"
        return CHANGED, f"{what}: it may admit what it is to reject"
    return "", ""


def _own(name: str, bindings: Sequence[Json], authors: Json | None) -> Json | None:
    """Return the guard of this name that this version makes; None if it makes none."""
    match name:
        case names.RUN_AUTHORS_GUARD:
            return authors
        case names.STAMP_GUARD:
            return stamp_guard((), deny=any("Deny" in _actions(binding) for binding in bindings))[0]
        case names.TOLERATIONS_GUARD:
            return capacity_guard((), [mark for binding in bindings for mark in _marks(binding)])[0]
        case names.NODE_NAMES_GUARD:
            return node_name_guard(())[0]
        case names.DOCTOR:
            return doctor_guard()[0]
    return None


def _actions(binding: Json) -> set[str]:
    return {*(binding["spec"].get("validationActions") or ())}


def _marks(binding: Json) -> Iterator[Mark]:
    """Yield the marks by which a binding selects pods."""
    selected = binding["spec"].get("matchResources") or {}
    for expression in expressions(selected.get("objectSelector") or {}):
        values = expression.get("values") or []
        if expression["operator"] == "Exists":
            yield Mark(expression["key"])
        elif expression["operator"] == "In" and len(values) == 1:
            yield Mark(expression["key"], values[0])


def _narrowed(
    name: str,
    bindings: Sequence[Json],
    expected: Sequence[Json],
    whole: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Yield the bindings that select less than the one of their name that is installed."""
    installed: dict[str, Json] = {name: {}}
    installed |= {f"{name}-{entry['name'].partition('.')[0]}": entry for entry in expected}
    for binding in bindings:
        title, spec = binding["metadata"]["name"], binding["spec"]
        selected = spec.get("matchResources") or {}
        parameter = (spec.get("paramRef") or {}).get("parameterNotFoundAction", "Deny")
        if title in installed and (
            not all(more.meant for more in narrowings(selected, installed[title], whole))
            or selected.get("resourceRules")
            or selected.get("excludeResourceRules")
            or parameter != "Deny"
        ):
            yield title


def _unguarded(
    expected: Sequence[Json], bindings: Sequence[Json], whole: Mapping[str, Mapping[str, str]]
) -> list[str]:
    selected = [binding["spec"].get("matchResources") or {} for binding in bindings]
    return [
        entry["name"]
        for entry in expected
        if not any(
            all(narrowing.meant for narrowing in narrowings(selectors, entry, whole))
            for selectors in selected
        )
    ]


def changed_parts(name: str, stored: Json, expected_spec: Json) -> list[str]:
    """Return the parts of a stored guard's spec by which it may reject less than `expected_spec`,
    which is of this version."""
    conditions = [
        condition
        for condition in stored.get("matchConditions") or ()
        if not (name in _ALLOW_EXEMPTIONS and is_exemption(condition))
    ]
    same = {
        "failurePolicy": stored.get("failurePolicy", "Fail") == expected_spec["failurePolicy"],
        "paramKind": stored.get("paramKind") == expected_spec.get("paramKind"),
        "matchConstraints": _covers(
            stored.get("matchConstraints") or {}, expected_spec["matchConstraints"]
        ),
        "matchConditions": conditions == (expected_spec.get("matchConditions") or []),
        "variables": all(
            variable in (stored.get("variables") or ())
            for variable in expected_spec.get("variables") or ()
        ),
        "validations": all(
            any(
                _conjuncts(validation) <= _conjuncts(stored_validation)
                for stored_validation in stored.get("validations") or ()
            )
            for validation in expected_spec["validations"]
        ),
    }
    return [part for part, is_same in same.items() if not is_same]


def _conjuncts(validation: Json) -> set[str]:
    return {*str(validation.get("expression")).split(_AND)}


def _covers(stored: Json, expected_constraints: Json) -> bool:
    """Return whether all that one matchConstraints selects is selected by the stored one."""
    rest, ours = (
        {key: value for key, value in constraints.items() if value and key != "resourceRules"}
        for constraints in (stored, expected_constraints)
    )
    return rest == ours and all(
        any(_includes(stored_rule, rule) for stored_rule in stored.get("resourceRules") or ())
        for rule in expected_constraints["resourceRules"]
    )


def _includes(stored: Json, rule: Json) -> bool:
    lists = ("apiGroups", "apiVersions", "operations", "resources")
    return (
        not stored.get("resourceNames")
        and stored.get("scope", "*") in ("*", rule["scope"])
        and all("*" in stored[field] or {*rule[field]} <= {*stored[field]} for field in lists)
    )
