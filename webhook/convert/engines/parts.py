"""What all extractors share: values by path, metadata, templates and variables.

An extractor returns the draft of a Run, with its places in the file. What it leaves out, or
changes, is found afterwards by rendering the Run again (`difference.py`), so it warns of nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from webhook import names
from webhook.convert.polyaxon.draft import Converted, settled
from webhook.convert.polyaxon.item import Item, Origin, plain
from webhook.run.backends.backend import put

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.convert.polyaxon.draft import Draft
    from webhook.run.backends.backend import ObjectKind

_TEMPLATE_METADATA: Final = ("labels", "annotations", "finalizers")
# Fields of a pod template that a Run sets itself.
_NOT_IN_TEMPLATE: Final = frozenset({"restartPolicy", "hostname", "subdomain"})


def begin(item: Item, kind: ObjectKind) -> Converted:
    """Return the draft with metadata and all fields that are at one place."""
    metadata, spec = find(item, "metadata"), find(item, "spec")
    made = Converted(
        name=_given(find(metadata, "name")),
        namespace=_given(find(metadata, "namespace")),
        labels=dict(entries(find(metadata, "labels"))),
        annotations={
            key: each
            for key, each in entries(find(metadata, "annotations")).items()
            if key != names.LAST_APPLIED
        },
    )
    if kind.framework:
        made.spec["framework"] = kind.framework
    for mapping in kind.fields:
        if not mapping.engine or "*" in mapping.engine:
            continue
        found = find(spec, *mapping.engine.split("."))
        value = None if found.value is None else mapping.to_run(plain(found))
        if value is None or (mapping.only and value not in mapping.only):
            continue
        put(made.spec, mapping.run, found if value == plain(found) else found.with_value(value))
    return made


def _given(item: Item) -> Item | None:
    return None if item.value is None else item


def read_replica(replica: Item, policies: Collection[str]) -> dict[str, Draft]:
    found: dict[str, Draft] = {}
    count, policy = find(replica, "replicas"), find(replica, "restartPolicy")
    if count.value is not None:
        found["count"] = count
    if isinstance(policy.value, str) and policy.value in policies:
        found["restartPolicy"] = policy
    return found


def is_second(template: Item, container: str) -> bool:
    containers = find(template, "spec", "containers").elements
    return any(find(each, "name").value == container for each in containers[1:])


def set_templates(
    made: Converted,
    found: dict[str, dict[str, Draft]],
    templates: Mapping[str, Item],
    marks: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Set one template if all roles have the same; else each role has its own.

    marks: by role, labels that rendering adds again.
    """
    drafts = {
        role: read_template(each, (marks or {}).get(role, {})) for role, each in templates.items()
    }
    texts = [settled(each) for each in drafts.values()]
    if all(each == texts[0] for each in texts):
        made.spec["template"] = next(iter(drafts.values()), {})
    else:
        made.spec["template"] = {}
        for role, draft in drafts.items():
            found[role]["template"] = draft
    made.spec["replicas"] = found


def read_template(template: Item, marks: Mapping[str, str]) -> dict[str, Draft]:
    metadata, spec = entries(find(template, "metadata")), entries(find(template, "spec"))
    result: dict[str, Draft] = {}
    kept: dict[str, Draft] = {
        key: metadata[key] for key in _TEMPLATE_METADATA if key in metadata and metadata[key].value
    }
    labels = entries(find(template, "metadata", "labels"))
    if any(labels[key].value == mark for key, mark in marks.items() if key in labels):
        left = {key: each for key, each in labels.items() if each.value != marks.get(key)}
        kept = {key: each for key, each in kept.items() if key != "labels"}
        kept |= {"labels": left} if left else {}
    if kept:
        result["metadata"] = kept
    result["spec"] = {
        key: each
        for key, each in spec.items()
        if key not in _NOT_IN_TEMPLATE and each.value is not None
    }
    return result


def join_templates(made: Converted) -> None:
    """Set one template for all roles if those of the roles are equal now."""
    roles = cast("dict[str, Any]", made.spec["replicas"])
    templates = [each.get("template") for each in roles.values()]
    if all(settled(each) == settled(templates[0]) for each in templates):
        made.spec["template"] = templates[0]
        for each in roles.values():
            del each["template"]


def without_env(made: Converted, own: Mapping[str, list[dict[str, Any]]]) -> None:
    """Remove variables from the main containers that rendering adds again.

    own: by role. The roles have templates of their own, or all have the run's.
    """
    replicas: Any = made.spec["replicas"]
    for role, replica in replicas.items():
        template = replica.get("template")
        if template is not None:
            strip_env(template, own[role])
    if made.spec["template"]:
        strip_env(made.spec["template"], next(iter(own.values())))


def strip_env(template: Any, own: list[dict[str, Any]]) -> None:
    spec = template["spec"]
    containers = settled(spec.get("containers"))
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        return
    items = spec["containers"]
    main = items.elements[0] if isinstance(items, Item) else items[0]
    env = containers[0].get("env") or []
    if not isinstance(env, list):
        return
    kept = [n for n, each in enumerate(env) if each not in own]
    fields: dict[str, Draft] = dict(main.entries)
    listed = main.entries["env"].elements if env else ()
    fields.pop("env", None)
    if kept:
        fields["env"] = [listed[n] for n in kept]
    rest = items.elements[1:] if isinstance(items, Item) else items[1:]
    spec["containers"] = [fields, *rest]


def first_of(*found: Item) -> Item:
    return next((each for each in found if each.value is not None), NOTHING)


def entries(item: Item) -> Mapping[str, Item]:
    """Return the items of a mapping that are not null."""
    return {key: each for key, each in item.entries.items() if each.value is not None}


def find(item: Item | None, *path: str) -> Item:
    """Return the item at a path below; an item without a value if there is none."""
    for step in path:
        if item is None:
            break
        item = item.entries.get(step)
    return item if item is not None else NOTHING


NOTHING: Final = Item(None, Origin("", (1, 1), (1, 1)))
