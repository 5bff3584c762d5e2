"""What all extractors share: values by path, metadata, templates and variables.

An extractor returns the draft of a Run, with its places in the file. What it leaves out, or
changes, is found afterwards by rendering the Run again (`difference.py`), so it warns of nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.convert.polyaxon.draft import Converted, non_empty, settled
from webhook.convert.polyaxon.item import NOTHING, Item, plain
from webhook.run.backends.backend import put

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from webhook.convert.polyaxon.draft import Draft
    from webhook.run.backends.backend import ObjectKind

_TEMPLATE_METADATA: Final = ("labels", "annotations", "finalizers")
# Fields of a pod template that a Run sets itself.
_NOT_IN_TEMPLATE: Final = frozenset({"restartPolicy", "hostname", "subdomain"})


def begin(item: Item, kind: ObjectKind) -> Converted:
    """Return the draft with metadata and all fields that are at one place."""
    metadata, spec = item.find("metadata"), item.find("spec")
    made = Converted(
        name=metadata.present.get("name"),
        namespace=metadata.present.get("namespace"),
        labels=dict(metadata.find("labels").present),
        annotations={
            key: annotation
            for key, annotation in metadata.find("annotations").present.items()
            if key != names.LAST_APPLIED
        },
    )
    if kind.framework:
        made.spec["framework"] = kind.framework
    for mapping in kind.fields:
        if not mapping.engine or "*" in mapping.engine:
            continue
        field = spec.find(*mapping.engine.split("."))
        value = None if field.value is None else mapping.to_run(plain(field))
        if value is None or (mapping.only and value not in mapping.only):
            continue
        put(made.spec, mapping.run, field if value == plain(field) else field.with_value(value))
    return made


def read_replica(replica: Item, policies: Collection[str]) -> dict[str, Draft]:
    fields: dict[str, Draft] = {}
    set_present(fields, count=replica.find("replicas"))
    policy = replica.find("restartPolicy")
    if isinstance(policy.value, str) and policy.value in policies:
        fields["restartPolicy"] = policy
    return fields


def is_second(template: Item, container: str) -> bool:
    containers = template.find("spec", "containers").elements
    return any(other.find("name").value == container for other in containers[1:])


def set_templates(
    made: Converted,
    replicas: dict[str, dict[str, Draft]],
    templates: Mapping[str, Item],
    marks: Mapping[str, Mapping[str, str]] | None = None,
    env: Mapping[str, list[dict[str, Any]]] | None = None,
    commands: Mapping[str, Mapping[str, Draft]] | None = None,
) -> None:
    """Set one template if all roles have the same; else each role has its own.

    marks, env: by role, labels and variables that rendering adds again. commands: by role, what
    the engine starts in the main container, which rendering leaves to it again.
    """
    drafts = {
        role: read_template(template, (marks or {}).get(role, {}))
        for role, template in templates.items()
    }
    for role, variables in (env or {}).items():
        strip_env(drafts[role], variables)
    for role, command in (commands or {}).items():
        _change_main(drafts[role], partial(_merge, command))
    texts = [settled(draft) for draft in drafts.values()]
    if all(text == texts[0] for text in texts):
        made.spec["template"] = next(iter(drafts.values()), {})
    else:
        made.spec["template"] = {}
        for role, draft in drafts.items():
            replicas[role]["template"] = draft
    made.spec["replicas"] = replicas


def read_template(template: Item, marks: Mapping[str, str]) -> dict[str, Draft]:
    metadata = template.find("metadata")
    kept: dict[str, Draft] = {
        key: metadata.find(key) for key in _TEMPLATE_METADATA if metadata.find(key).value
    }
    labels = metadata.find("labels").present
    left = {key: label for key, label in labels.items() if label.value != marks.get(key)}
    if len(left) < len(labels):
        kept = non_empty(**{**kept, "labels": left})
    spec = template.find("spec").present
    of_pod = {key: field for key, field in spec.items() if key not in _NOT_IN_TEMPLATE}
    return {**non_empty(metadata=kept), "spec": of_pod}


def without_env(made: Converted, env_by_role: Mapping[str, list[dict[str, Any]]]) -> None:
    """Remove variables from the main containers that rendering adds again.

    own: by role. The roles have templates of their own, or all have the run's.
    """
    replicas: Any = made.spec["replicas"]
    for role, replica in replicas.items():
        strip_env(replica.get("template"), env_by_role[role])
    strip_env(made.spec["template"], next(iter(env_by_role.values())))


def strip_env(template: Any, variables: list[dict[str, Any]]) -> None:
    """Remove variables from the main container of a template, if there is one."""

    def strip(main: Mapping[str, Item]) -> Mapping[str, Draft]:
        env = main.get("env", NOTHING)
        if env.value is not None and not isinstance(env.value, tuple):
            return main
        kept = [variable for variable in env.elements if plain(variable) not in variables]
        others = {key: field for key, field in main.items() if key != "env"}
        return {**others, **non_empty(env=kept)}

    _change_main(template, strip)


def _merge(command: Mapping[str, Draft], main: Mapping[str, Item]) -> Mapping[str, Draft]:
    return {**main, **command}


def _change_main(
    template: Any, change: Callable[[Mapping[str, Item]], Mapping[str, Draft]]
) -> None:
    """Change the main container of a template, which is the first, if there is one."""
    spec = template["spec"] if template else {}
    containers = spec.get("containers", ())
    listed = containers.elements if isinstance(containers, Item) else containers
    if listed and isinstance(listed[0].value, dict):
        spec["containers"] = [change(listed[0].entries), *listed[1:]]


def first_of(*items: Item) -> Item:
    """Return the first item with a value, else one without."""
    return next((item for item in items if item.value is not None), NOTHING)


def set_present(target: dict[str, Any], **items: Item) -> None:
    target |= {name: item for name, item in items.items() if item.value is not None}
