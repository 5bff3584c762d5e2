"""Pods that are alike but for some fields, as one template and what differs from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.run.polyaxon.draft import settled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.run.polyaxon.draft import Draft


class Split(NamedTuple):
    """base: of all. rest: what each has beside it; laid over base they give the pod's spec again.

    Containers go by their names, as in a strategic merge.
    """

    base: dict[str, Draft]
    rest: dict[str, dict[str, Draft]]


def split(specs: Mapping[str, dict[str, Draft]]) -> Split:
    """The specs of pods by role, each with its containers."""
    names = {role: _names(spec) for role, spec in specs.items()}
    if len(set(names.values())) > 1:
        return Split({}, dict(specs))
    base, rest = _split(specs)
    parts = {role: list(_containers(spec)) for role, spec in specs.items()}
    base_containers: list[Draft] = []
    rest_containers: dict[str, list[Draft]] = {role: [] for role in specs}
    for position, name in enumerate(next(iter(names.values()))):
        same, other = _split({role: found[position] for role, found in parts.items()})
        base_containers.append({"name": name, **same})
        for role, fields in other.items():
            if fields:
                rest_containers[role].append({"name": name, **fields})
    base = {"containers": base_containers, **base}
    for role, containers in rest_containers.items():
        if containers:
            rest[role] = {"containers": containers, **rest[role]}
    return Split(base, rest)


def _split(
    maps: Mapping[str, Mapping[str, Draft]],
) -> tuple[dict[str, Draft], dict[str, dict[str, Draft]]]:
    """The fields that all have alike, and those that each has beside."""
    first = next(iter(maps.values()))
    alike = {
        key: value
        for key, value in first.items()
        if key not in ("containers", "name") and _same(key, list(maps.values()))
    }
    rest = {
        role: {k: v for k, v in each.items() if k not in alike and k not in ("containers", "name")}
        for role, each in maps.items()
    }
    return alike, rest


def _same(key: str, maps: Sequence[Mapping[str, Draft]]) -> bool:
    if any(key not in each for each in maps):
        return False
    values = [settled(each[key]) for each in maps]
    return all(value == values[0] for value in values)


def _names(spec: Mapping[str, Draft]) -> tuple[Any, ...]:
    return tuple(settled(container.get("name")) for container in _containers(spec))


def _containers(spec: Mapping[str, Draft]) -> list[Mapping[str, Draft]]:
    found = spec.get("containers")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
