"""The pod templates of known kinds, by the files of `webhook.sources`.

Each comes with what the object's controller adds to its pods.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

from webhook.sources import SHIPPED
from webhook.sources.kind_model import BY_INDEX
from webhook.workloads.build_template import ObjectView, built_template
from webhook.workloads.template import PodTemplate, ReplicaAdditions, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.sources.kind_model import Addition, Condition, Field, PodKind, Pods
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object

# No object has a field of this name.
_ABSENT: Final[Path] = ("",)
# A StatefulSet's label with the pod's name, after which its claims are named.
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
# By API group and kind, because equal names of kinds have different meanings in different groups.
# Kinds whose pods are not predictable are left out.
KINDS: Final[Mapping[tuple[str, str], Sequence[PodKind]]] = SHIPPED.template_kinds


def group_of(source: Object) -> str:
    """Return the object's API group; empty for the core group."""
    return str(source.value.get("apiVersion") or "").rpartition("/")[0]


def templates_of_known_kind(source: Object, sources: SourceTable) -> list[PodTemplate] | None:
    """Return the object's pod templates; None if its kind is not known.

    A missing template is left out.
    """
    pod_kind = _kind_in(source.value, sources)
    if pod_kind is None:
        return None
    templates = _by_kind(ObjectView(source, source.name, sources), pod_kind, ())
    return [template for template in templates if isinstance(template.template, dict)]


def claim_names(source: Object, sources: SourceTable) -> Iterator[str]:
    """Yield the names of the volumes that the object's controller adds to its pods."""
    pod_kind = _kind_in(source.value, sources)
    if pod_kind is None:
        return
    for view, kind in _made_kinds(ObjectView(source, source.name, sources), pod_kind):
        yield from filter(None, map(_claim_name, _claims(view, kind)))


def _claims(view: ObjectView, kind: PodKind) -> Iterator[JsonObject]:
    for field in kind.claims:
        for claim in _flattened(view.source.value, view.path(field)):
            if isinstance(claim, dict):
                yield claim


def _claim_name(claim: JsonObject) -> str:
    name = claim.get("name") or at(claim, ("metadata", "name"))
    return name if isinstance(name, str) else ""


def fields_not_read(source: Object, sources: SourceTable) -> Iterator[Path]:
    """Yield the paths of present fields that describe or change pods, and are not read."""
    pod_kind = _kind_in(source.value, sources)
    if pod_kind is None:
        return
    for view, kind in _made_kinds(ObjectView(source, source.name, sources), pod_kind):
        for field in kind.not_read:
            path = view.path(field)
            if any(value is not None for value in _flattened(source.value, path)):
                yield path


def _kind_in(value: Any, sources: SourceTable) -> PodKind | None:
    group, _, version = str(at(value, ("apiVersion",)) or "").rpartition("/")
    kinds = sources.template_kinds.get((group, str(at(value, ("kind",)))), ())
    return next((kind for kind in kinds if not kind.versions or version in kind.versions), None)


def _like(view: ObjectView, pods: Pods) -> tuple[ObjectView, PodKind] | None:
    """Return the object that an object creates, if that one's kind creates the pods."""
    if pods.like is None:
        return None
    like = pods.like
    name = view.fill(like.name, {"name": view.name})
    if like.object is not None:
        root = view.path(like.object)
        pod_kind = _kind_in(at(view.source.value, root), view.sources)
        made = ObjectView(
            view.source, name, view.sources, (*root, "spec"), (*root, "metadata"), root
        )
        return None if pod_kind is None else (made, pod_kind)
    spec = view.path(like.spec) if like.spec else ()
    metadata = view.path(like.metadata) if like.metadata else _ABSENT
    kinds = view.sources.template_kinds[like.group, like.kind]
    return ObjectView(view.source, name, view.sources, spec, metadata), kinds[-1]


def _made_kinds(view: ObjectView, kind: PodKind) -> Iterator[tuple[ObjectView, PodKind]]:
    yield view, kind
    for pods in kind.pods:
        if made := _like(view, pods):
            yield from _made_kinds(*made)


def _by_kind(
    view: ObjectView, kind: PodKind, outer: Sequence[tuple[ObjectView, Addition]]
) -> Iterator[PodTemplate]:
    """Yield the templates of a kind. `outer` are additions by the objects that create this one."""
    for pods in kind.pods:
        if made := _like(view, pods):
            if _exist(pods, view):
                yield from _by_kind(*made, [*((view, addition) for addition in pods.adds), *outer])
        elif pods.like is None:
            yield from _of_pods(view, kind, pods, outer)


def _of_pods(
    view: ObjectView, kind: PodKind, pods: Pods, outer: Sequence[tuple[ObjectView, Addition]]
) -> Iterator[PodTemplate]:
    entries = list(_entries(view, pods))
    parts = [entry_view.fill(pods.part, facts) for entry_view, facts in entries]
    groups = [_count(entry_view, pods) for entry_view, _ in entries]
    for position, (entry, about) in enumerate(entries):
        members = _product(entry, pods.times) // max(_product(entry, pods.over), 1) - pods.less
        built = built_template(entry, pods.build) if pods.build else None
        counts = (*pods.count, *pods.least, *pods.most, *pods.times, *pods.over)
        counts += (pods.first,) if pods.first else ()
        miscounted = tuple(entry.miscounted(counts))
        none = members < 0 or (pods.less and not members)
        if (none and not miscounted) or (pods.build and not built):
            continue
        facts = {
            **about,
            "part": parts[position],
            "groups": groups[position],
            "allGroups": sum(groups),
        }
        added = [
            pair
            for pair in (*((entry, addition) for addition in pods.adds), *outer)
            if _holds(pair[1].when, pair[0], facts, parts)
        ]
        first = entry.number([pods.first], 0) if pods.first else 0
        place, claims = _place(entry, pods), list(_claims(view, kind))
        if kind.only_mounted:
            mounted = _mounted(built.value if built else at(view.source.value, place))
            claims = [claim for claim in claims if _claim_name(claim) in mounted]
        made = partial(
            _additions,
            added,
            facts,
            partial(_numbers, members, first, sum(groups[:position])),
            _owner(view.source) if pods.owned else None,
            pods.bare,
            partial(_volumes, claims, view.name),
        )
        # Of a thousand replicas that are alike, one is made.
        varied = any(_varies(addition) for _, addition in added)
        yield PodTemplate(
            view.source,
            place,
            parts[position],
            None if pods.per_node else groups[position] * max(members, 0),
            made if varied else partial(_alike, made(0)),
            built,
            unmarked=pods.unmarked,
            miscounted=miscounted,
        )


def _count(view: ObjectView, pods: Pods) -> int:
    count = view.number(pods.count, pods.default)
    return max(min(count, view.number(pods.most, count)), view.number(pods.least, 0))


def _product(view: ObjectView, fields: Sequence[Field]) -> int:
    return prod(view.number([field]) for field in fields)


def _place(entry: ObjectView, pods: Pods) -> Path:
    if pods.build is None:
        return entry.path(pods.template) if pods.template else ()
    start = pods.build.template or pods.build.spec
    return entry.path(start) if start else entry.entry or entry.spec


def _mounted(template: Any) -> set[Any]:
    return {
        at(mount, ("name",))
        for containers in ("containers", "initContainers")
        for mount in _flattened(template, ("spec", containers, "volumeMounts"))
    }


def _volumes(
    claims: Sequence[JsonObject], name: str, labels: Mapping[str, str]
) -> list[JsonObject]:
    """Return a volume for each claim, which is named after its pod, or else after the object.

    A v1.Volume stays as it is. The names of Volcano's volumes are random.
    """
    owner = labels.get(_POD_NAME, name)
    return [
        claim
        if "name" in claim
        else {
            "name": _claim_name(claim) or f"{name}-{position}",
            "persistentVolumeClaim": {"claimName": f"{_claim_name(claim)}-{owner}"},
        }
        for position, claim in enumerate(claims)
    ]


def _exist(pods: Pods, view: ObjectView) -> bool:
    return _holds(pods.when, view, {}, ()) and (
        not pods.any_of or any(view.value(field) is not None for field in pods.any_of)
    )


def _entries(view: ObjectView, pods: Pods) -> Iterator[tuple[ObjectView, Mapping[str, Any]]]:
    """Yield each entry that has a template, with its facts for texts."""
    if pods.each is None:
        if _exist(pods, view):
            yield view, {"name": view.name}
        return
    path, listed = view.path(pods.each), view.value(pods.each)
    steps: Sequence[str | int] = ()
    if isinstance(listed, dict):
        steps = [key for key, entry in listed.items() if entry]
    elif isinstance(listed, list):
        steps = range(len(listed))
    for position, step in enumerate(steps):
        facts = {"name": view.name, "key": str(step).lower(), "position": position}
        if _exist(pods, entry := replace(view, entry=(*path, step))):
            yield entry, facts


def _holds(
    conditions: Sequence[Condition],
    view: ObjectView,
    facts: Mapping[str, Any],
    parts: Sequence[str],
) -> bool:
    """Return True if all conditions hold, except those on the index."""
    for fact, among, field, absent in conditions:
        if field is not None:
            value = view.value(field)
            holds = absent if value is None else among is None or value in among
        else:
            holds = (
                fact == "index"
                or (fact == "part" and facts["part"] in (among or ()))
                or (fact == "without" and not set(among or ()).intersection(parts))
            )
        if not holds:
            return False
    return True


def _alike(additions: ReplicaAdditions, _index: int) -> ReplicaAdditions:
    return additions


def _varies(addition: Addition) -> bool:
    """Return True if replicas of one template get different texts, or some get none."""
    texts = (*addition.labels.values(), *addition.annotations.values())
    named = {choice for text in texts for piece in text for choice in piece}
    return not BY_INDEX.isdisjoint(named) or any(
        condition.fact == "index" for condition in addition.when
    )


def _additions(
    added: Sequence[tuple[ObjectView, Addition]],
    facts: Mapping[str, Any],
    numbers: Callable[[int], Mapping[str, int]],
    owner: JsonObject | None,
    bare: bool,
    volumes: Callable[[Mapping[str, str]], list[JsonObject]],
    index: int,
) -> ReplicaAdditions:
    """Return what a controller adds to one replica; later additions replace earlier ones."""
    labels: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    pod_facts = {**facts, **numbers(index)}
    for view, addition in added:
        if any(
            condition.fact == "index" and index not in (condition.among or ())
            for condition in addition.when
        ):
            continue
        pod_facts["name"] = view.name
        labels |= {key: view.fill(text, pod_facts) for key, text in addition.labels.items()}
        annotations |= {
            key: view.fill(text, pod_facts) for key, text in addition.annotations.items()
        }
        copied = view.value(addition.labels_from) if addition.labels_from else None
        labels |= copied if isinstance(copied, dict) else {}
    return ReplicaAdditions(labels, annotations, owner, bare, volumes(labels))


def _numbers(members: int, first: int, groups_before: int, index: int) -> Mapping[str, int]:
    group, member = divmod(index, max(members, 1))
    return {
        "index": index,
        "ordinal": first + index,
        "number": index + 1,
        "group": group,
        "member": member,
        "rank": member + 1,
        "globalGroup": groups_before + group,
    }


def _owner(source: Object) -> JsonObject:
    return {
        "apiVersion": source.value["apiVersion"],
        "kind": source.kind,
        "name": source.name,
        "controller": True,
    }


def _flattened(value: Any, path: Path) -> Iterator[Any]:
    """Yield the values at a path; a list on the way contributes each of its items."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            yield from _flattened(item, path)
        elif not path:
            yield item
        elif isinstance(item, dict):
            yield from _flattened(item.get(path[0]), path[1:])
