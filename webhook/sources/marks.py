"""Marks of a system's pods: labels that identify them, and keys for role, index and kind.

A `Source` is the part `identity` of a system's file. `webhook.identity` reads pods with it, and
`webhook.exported` writes the same conditions in CEL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.frameworks.table import FRAMEWORKS

Labels: TypeAlias = Mapping[str, str]
Words: TypeAlias = Mapping[str, str]
"""A system's values, in lower case, and Fairlead's for them."""

NONE: Final = "none"
"""In a condition on the role or the framework: the pod has none."""
COMPLETION_INDEX: Final = "completionIndex"
"""In a condition: Kubernetes' own index of a pod in an Indexed Job."""
_FACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kind": names.KINDS,
    "framework": tuple(FRAMEWORKS),
    "role": names.ROLES,
}


class Key(NamedTuple):
    """A key in the pod's labels, or in its annotations if `annotation` is True."""

    name: str
    annotation: bool = False

    def __str__(self) -> str:
        return f"annotation {self.name}" if self.annotation else self.name


_COMPLETION: Final = "batch.kubernetes.io/job-completion-index"
# Before Kubernetes 1.28 it was an annotation only.
COMPLETION_KEYS: Final = (Key(_COMPLETION), Key(_COMPLETION, annotation=True))


class Mark(NamedTuple):
    """A label that marks a pod; with `value` None its presence is enough.

    With `namespace` the label is on the pod's Namespace, and marks every pod in it.
    """

    key: str
    value: str | None = None
    namespace: bool = False

    def __str__(self) -> str:
        label = self.key if self.value is None else f"{self.key}={self.value}"
        return f"namespace label {label}" if self.namespace else label


class Clause(NamedTuple):
    """One source of a fact: the value at `key`, in any case, looked up in `words`.

    If `words` is a string, it is the fact itself, for any value of the key.
    """

    key: Key
    words: Words | str


class Condition(NamedTuple):
    """A condition on a pod.

    fact:   "label", "role", "framework" or COMPLETION_INDEX
    label:  the label, if that is the fact
    among:  the permitted values; None for a label: it is present
    but:    the forbidden values of a label that is present
    host:   labels, and COMPLETION_INDEX; joined by "-" they equal the label up to its first dot
    absent: True if the condition also holds without the label
    """

    fact: str
    label: str = ""
    among: tuple[str | int, ...] | None = None
    but: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    absent: bool = False

    def holds(
        self, labels: Labels, annotations: Labels, role: str | None, framework: str | None
    ) -> bool:
        """Return True if it holds for a pod with these labels, annotations, role and framework."""
        if self.fact == "label":
            value = labels.get(self.label)
            if value is None:
                return self.absent
            if self.host:
                return value.partition(".")[0] == _joined(self.host, labels, annotations)
            return value not in self.but and (self.among is None or value in self.among)
        values = self.among or ()
        if self.fact == COMPLETION_INDEX:
            return completion_index(labels, annotations) in values
        return ((role if self.fact == "role" else framework) or NONE) in values

    def read_keys(self) -> Iterator[Key]:
        """Yield the pod's keys that it reads, in order."""
        for name in (self.label or self.fact, *self.host):
            if name == COMPLETION_INDEX:
                yield from COMPLETION_KEYS
            elif self.fact == "label":
                yield Key(name)


class IndexKey(NamedTuple):
    """A key with the replica's index or its role's number of replicas, for pods for which all of
    `when` holds."""

    key: Key
    when: tuple[Condition, ...] = ()


class ObjectRef(NamedTuple):
    """The object of a run, by the label of its pods that has the object's name."""

    api_version: str
    kind: str
    label: str


class Leader(NamedTuple):
    """Whether a pod for which all of `when` holds leads its run: if all of `only_if` holds.

    With `unless_led` it does not if another pod of that object leads by its role.
    """

    when: tuple[Condition, ...]
    only_if: tuple[Condition, ...] = ()
    unless_led: ObjectRef | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One row: a system, the labels by which it marks its pods, and the source of each fact.

    `origin` names where the system's own code writes the labels. Of a fact's keys and clauses the
    first with a result is used; `kind_always` and `framework_always` apply if no clause has one. Of
    `leaders` the first whose conditions hold decides whether the pod leads. `object` is the object
    that a user wrote, for pods whose owners do not lead to it.
    """

    name: str
    system: str
    origin: str
    marks: tuple[Mark, ...]
    run: tuple[Key, ...] = ()
    kind: tuple[Clause, ...] = ()
    kind_always: str | None = None
    framework: tuple[Clause, ...] = ()
    framework_always: str | None = None
    role: tuple[Clause, ...] = ()
    index: tuple[IndexKey, ...] = ()
    replicas: tuple[IndexKey, ...] = ()
    leaders: tuple[Leader, ...] = ()
    object: ObjectRef | None = None
    note: str = ""

    @property
    def index_keys(self) -> tuple[Key, ...]:
        """The keys of the index and of its conditions, without duplicates."""
        return _read_by(self.index)

    @property
    def replicas_keys(self) -> tuple[Key, ...]:
        """The same for the number of replicas."""
        return _read_by(self.replicas)

    @property
    def leads_keys(self) -> tuple[Key, ...]:
        """The keys of the leader conditions, without duplicates."""
        conditions = (
            condition for rule in self.leaders for condition in (*rule.when, *rule.only_if)
        )
        return _distinct(key for condition in conditions for key in condition.read_keys())

    def read_keys(self) -> frozenset[Key]:
        """Return every key of the pod (not of its namespace) that this row reads."""
        return frozenset(
            (
                *(Key(mark.key) for mark in self.marks if not mark.namespace),
                *self.run,
                *(clause.key for clause in (*self.kind, *self.framework, *self.role)),
                *self.index_keys,
                *self.replicas_keys,
                *self.leads_keys,
            )
        )


def parse_index(value: str | None) -> int | None:
    """Return a replica's index; None if absent, not all ASCII digits, or over 32 bits.

    An invalid index is not an error: the pod belongs to its run nevertheless.
    """
    if value is None or not 0 < len(value) <= 10 or not (value.isascii() and value.isdigit()):
        return None
    number = int(value)
    return number if number < 2**31 else None


def completion_index(labels: Labels, annotations: Labels) -> int | None:
    """Return the pod's index in its Indexed Job, or None."""
    index = parse_index(labels.get(_COMPLETION))
    return parse_index(annotations.get(_COMPLETION)) if index is None else index


def source(name: str, spec: Mapping[str, Any]) -> Source:
    identity = spec["identity"]
    kind, kind_always = _clauses("kind", identity)
    framework, framework_always = _clauses("framework", identity)
    role, _ = _clauses("role", identity)
    return Source(
        name=name,
        system=spec["system"],
        origin=spec.get("origin", ""),
        marks=tuple(map(_mark, identity["marks"])),
        run=tuple(map(_key, identity.get("run", ()))),
        kind=kind,
        kind_always=kind_always,
        framework=framework,
        framework_always=framework_always,
        role=role,
        index=_index_keys(identity, "index"),
        replicas=_index_keys(identity, "replicas"),
        leaders=tuple(
            Leader(
                _conditions(coordinator, "when"),
                _conditions(coordinator, "onlyIf"),
                _ref(coordinator, "unlessLed"),
            )
            for coordinator in identity.get("coordinator", ())
        ),
        object=_ref(identity, "object"),
        note=spec.get("note", ""),
    )


def _index_keys(identity: Mapping[str, Any], name: str) -> tuple[IndexKey, ...]:
    return tuple(
        IndexKey(_key(entry), _conditions(entry, "when")) for entry in identity.get(name, ())
    )


def _read_by(keys: tuple[IndexKey, ...]) -> tuple[Key, ...]:
    return _distinct(
        key
        for index_key in keys
        for key in (*(read for when in index_key.when for read in when.read_keys()), index_key.key)
    )


def _mark(raw: Mapping[str, Any]) -> Mark:
    of_namespace = "namespaceLabel" in raw
    return Mark(raw["namespaceLabel" if of_namespace else "label"], raw.get("value"), of_namespace)


def _ref(holder: Mapping[str, Any], name: str) -> ObjectRef | None:
    raw = holder.get(name)
    return ObjectRef(raw["apiVersion"], raw["kind"], raw["label"]) if raw else None


def _key(raw: Mapping[str, Any]) -> Key:
    return Key(raw["label"]) if "label" in raw else Key(raw["annotation"], annotation=True)


def _clauses(fact: str, identity: Mapping[str, Any]) -> tuple[tuple[Clause, ...], str | None]:
    """Return the clauses of a fact, and the value if none of them has a result."""
    *clauses, last = identity.get(fact) or [None]
    if last is None:
        return (), None
    always = None
    if "label" in last or "annotation" in last:
        clauses.append(last)
    else:
        always = last["always"]
    parsed_clauses = (
        Clause(_key(clause), clause.get("always") or _parse_words(fact, clause))
        for clause in clauses
    )
    return tuple(parsed_clauses), always


def _parse_words(fact: str, raw: Mapping[str, Any]) -> Words:
    ours = {word: word for word in _FACTS[fact]} if raw.get("ours") else {}
    return ours | {their: our for our, words in raw.get("words", {}).items() for their in words}


def _conditions(raw: Mapping[str, Any], name: str) -> tuple[Condition, ...]:
    return tuple(map(_condition, raw.get(name, ())))


def _condition(raw: Mapping[str, Any]) -> Condition:
    if "label" not in raw:
        ((fact, values),) = raw.items()
        return Condition(fact, among=tuple(values))
    among = raw.get("in")
    return Condition(
        "label",
        raw["label"],
        None if among is None else tuple(among),
        tuple(raw.get("notIn", ())),
        tuple(raw.get("host", ())),
        raw.get("orAbsent", False),
    )


def _joined(host: tuple[str, ...], labels: Labels, annotations: Labels) -> str | None:
    parts = [
        completion_index(labels, annotations) if name == COMPLETION_INDEX else labels.get(name)
        for name in host
    ]
    return None if None in parts else "-".join(map(str, parts))


def _distinct(keys: Iterator[Key]) -> tuple[Key, ...]:
    return tuple(dict.fromkeys(keys))
