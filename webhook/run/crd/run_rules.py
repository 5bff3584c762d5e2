"""Rules in CEL for what the schema of a Run cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.placement_rules import PLACEMENT
from webhook.crd.rule import Rule, literal
from webhook.placement.schema.syntax import MAX_NAME
from webhook.run.model import DEFAULT_ROLE, SERVING, RunSpec
from webhook.run.rendezvous.table import FRAMEWORKS, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.run.rendezvous.framework import Roles

_SERVES: Final = f"self.kind in {literal([kind for kind in names.KINDS if kind in SERVING])}"
_NO_REPLICAS: Final = "!has(self.replicas)"

_NAMES: Final = (
    Rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "the run's Service has this name too: it must be lower-case letters, digits and '-', with "
        "a letter at the beginning and a letter or a digit at the end; give the run another name",
        at=".metadata.name",
    ),
    Rule(
        f"size(self.metadata.name) + (has(self.spec.replicas) ? self.spec.replicas.map(r,"
        f" size(r) + size(string(self.spec.replicas[r].count - 1))).max() : "
        f"{len(DEFAULT_ROLE) + 1}) <= {MAX_NAME - 2}",
        f"pods are called <run>-<role>-<index>, in at most {MAX_NAME} characters: give the run a "
        "shorter name",
        at=".metadata.name",
    ),
)
_OVERRIDES: Final = (
    Rule(
        "!has(self.byIndex) || self.byIndex.all(o, o.index < self.count)",
        "each index must be less than count, since indexes begin at 0: raise count, or remove the "
        "override",
        at=".byIndex",
    ),
)
# What may be changed at any time.
CHANGEABLE: Final = ("suspend", "ttlSecondsAfterFinished")
_CURE: Final = "delete the Run, and create it anew"


def _same(field: str) -> str:
    """Whether the field is as it was. Optionals compare too, but at a cost without a limit."""
    return (
        f"has(self.{field}) == has(oldSelf.{field})"
        f" && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )


_SAME_ROLES: Final = (
    "has(self.replicas) == has(oldSelf.replicas) && (!has(self.replicas)"
    " || (size(self.replicas) == size(oldSelf.replicas)"
    " && self.replicas.all(r, r in oldSelf.replicas)))"
)
_FIELDS: Final = [
    field for field in RunSpec.outer_names() if field not in (*CHANGEABLE, "replicas")
]

FIXED: Final = (
    *(
        Rule(_same(field), f"may not be changed after creation: {_CURE}", at=f".{field}")
        for field in _FIELDS
    ),
    Rule(
        _SAME_ROLES,
        f"roles may not be added or removed after creation: {_CURE}",
        at=".replicas",
    ),
    Rule(
        f"!({_SAME_ROLES}) || ({_same('replicas')})",
        f"may not be changed after creation: {_CURE}",
        at=".replicas",
    ),
)


def _roles() -> Iterator[Rule]:
    """Roles that the framework knows, and those without which it cannot start."""
    for framework, roles in ROLES.items():
        other = f"self.?framework.orValue('') != {literal(framework or '')} || {_SERVES}"
        of = f"framework {framework}" if framework else "a run without a framework"
        known = ", ".join(roles.known)
        yield Rule(
            f"{other} || {_NO_REPLICAS} || self.replicas.all(r, r in {literal(roles.known)})",
            f"{of} has the roles {known} only: rename the others, or remove them",
            at=".replicas",
        )
        if DEFAULT_ROLE not in roles.known:
            yield Rule(
                f"{other} || has(self.replicas)",
                f"is required for {of}: its roles are {known}",
                at=".replicas",
            )
        for some in roles.required:
            # At least one role there must be; where these are all, nothing is left to be said.
            if set(some) != set(roles.known):
                there = " || ".join(f"{literal(role)} in self.replicas" for role in some)
                yield Rule(
                    f"{other} || {_NO_REPLICAS} || {there}",
                    f"{of} needs a {' or a '.join(some)}: add it",
                    at=".replicas",
                )


def _counts() -> Iterator[Rule]:
    single = single_roles(ROLES)
    yield Rule(
        f"{_NO_REPLICAS}"
        f" || self.replicas.all(r, !(r in {literal(single)}) || self.replicas[r].count == 1)",
        f"of the roles {', '.join(single)} there is one replica at most: set its count to 1",
        at=".replicas",
    )
    replaced = {newer: older for each in ROLES.values() for newer, older in each.newer.items()}
    for newer, older in replaced.items():
        yield Rule(
            f"{_NO_REPLICAS} || !('{older}' in self.replicas && '{newer}' in self.replicas)",
            f"{newer} is the {older} by its newer name: keep one of the two",
            at=".replicas",
        )
    yield Rule(
        f"!({_SERVES}) || {_NO_REPLICAS}"
        f" || self.replicas.all(r, r == {literal(DEFAULT_ROLE)} && self.replicas[r].count == 1)",
        f"a notebook, a tensorboard or a service is one pod, of role {DEFAULT_ROLE}: remove the "
        "replicas",
        at=".replicas",
    )
    for framework in FRAMEWORKS.values():
        for rule, message, at in framework.rules:
            yield Rule(rule, message, at=at)


def _companions() -> Iterator[Rule]:
    """Fields that mean something only beside others."""
    yield Rule(
        f"!({_SERVES}) || !has(self.framework)",
        "goes with the kinds experiment, job and build only: remove it",
        at=".framework",
    )
    for field in ("ports", "maxAgeSeconds"):
        yield Rule(
            f"{_SERVES} || !has(self.{field})",
            "goes with the kinds notebook, tensorboard and service only: remove it",
            at=f".{field}",
        )
    for framework in FRAMEWORKS:
        yield Rule(
            f"!has(self.{framework}) || self.?framework.orValue('') == {literal(framework)}",
            f"goes with framework {framework} only: remove it",
            at=f".{framework}",
        )
    yield Rule(
        "!has(self.ports) || size(self.ports) == 1 || self.ports.all(p, has(p.name)"
        " && self.ports.exists_one(q, has(q.name) && q.name == p.name))",
        "where there are several ports, each needs a name of its own: give it one",
        at=".ports",
    )


def single_roles(table: Mapping[str | None, Roles]) -> list[str]:
    """The roles of which no framework has more than one replica.

    Raises ValueError if a role is single to one framework and not to another: a rule for all of
    them could not say so.
    """
    single = {role for roles in table.values() for role in roles.single}
    for framework, roles in table.items():
        if several := single & {*roles.known} - roles.single:
            raise ValueError(f"{framework} has several {', '.join(several)}, others have one")
    return [role for role in names.ROLES if role in single]


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "Run": _NAMES,
    "RunSpec": (*_roles(), *_counts(), *_companions(), *FIXED),
    "ReplicaSpec": _OVERRIDES,
    **PLACEMENT,
}
