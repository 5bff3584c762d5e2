"""Keep the namespaces that an admin has left out on purpose, through an installation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.installation.choices import with_entries
from webhook.installation.manifests import CONTROLLER, INTERCEPTION
from webhook.installation.restoring import LIMITS
from webhook.interception import of_namespaces, read_record
from webhook.judgement.entry_states import narrowings
from webhook.placement.label_values import expressions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.object_kinds import Key
    from webhook.kube.client import Client

    Json = dict[str, Any]
    Objects = Mapping[Key, Json]

_SELECTOR: Final = "namespaceSelector"


async def read_whole(client: Client) -> dict[str, Mapping[str, str]]:
    """Return the namespaces that are placed as a whole, with their labels. Raises ClusterError."""
    listed = await client.list(
        CollectionPath("v1", "namespaces"),
        lambda namespace: namespace["metadata"],
        query={"labelSelector": f"{names.PLACE}={names.PLACE_ALL}"},
    )
    return {metadata["name"]: metadata["labels"] for metadata in listed.items}


def keep_narrowing(
    live: Objects, wanted: Objects, whole: Mapping[str, Mapping[str, str]]
) -> tuple[dict[Key, Json], list[str]]:
    """Return the wanted objects with what the live entries leave out on purpose, and a note each.

    That is what `fairlead doctor` takes as meant: namespaces that are excluded by name, and a limit
    to some namespaces that the record on the controller's Deployment has, too. Entries that are new
    get the same limit.
    """
    record = read_record(live.get(CONTROLLER))
    entries = wanted[INTERCEPTION]["webhooks"]
    selector_by_name = {
        entry["name"]: entry.get(_SELECTOR) or {}
        for entry in (live.get(INTERCEPTION) or {}).get("webhooks") or ()
    }
    recorded = [
        *([of_namespaces("In", record.only_namespaces)] if record.only_namespaces else []),
        *record.namespace_labels,
    ]
    limits = [_alike(expression) for expression in recorded]

    def has_limits(selector: Json) -> bool:
        return bool(limits) and {*limits} <= {*map(_alike, expressions(selector))}

    limited = any(has_limits(selector_by_name.get(entry["name"]) or {}) for entry in entries)
    kept, notes = [], []
    for entry in entries:
        entry_expressions = list(expressions(entry[_SELECTOR]))
        selector = selector_by_name.get(entry["name"]) or {}
        has_them = has_limits(selector)
        more = [*recorded] if limited and not has_them else []
        foreign = False
        for expression in expressions(selector):
            alone = {_SELECTOR: {"matchExpressions": [expression]}}
            extra = list(narrowings(alone, entry, whole))
            if has_them and _alike(expression) in limits:
                more.append(expression)
            elif any(narrowing.meant for narrowing in extra):
                entry_expressions = [
                    entry_expression
                    for entry_expression in entry_expressions
                    if not _is_within(entry_expression, expression)
                ]
                more.append(expression)
                notes += [f"kept: {entry['name']}: {narrowing.what}" for narrowing in extra]
            else:
                foreign = foreign or bool(extra)
        made = {"matchExpressions": [*entry_expressions, *more]}
        # A limit takes the place of the rest (docs/guides/customize.md).
        alike = sorted(map(_alike, expressions(made))) == sorted(map(_alike, expressions(selector)))
        if not foreign and (has_them or (more and alike)):
            made = selector
        kept.append({**entry, _SELECTOR: made} if more else entry)
    if kept == entries:
        return dict(wanted), []
    objects = with_entries(wanted, kept)
    if limited:
        records = {
            name: value
            for name, value in live[CONTROLLER]["metadata"]["annotations"].items()
            if name in LIMITS
        }
        controller = objects[CONTROLLER]
        metadata = controller["metadata"]
        annotations = {**(metadata.get("annotations") or {}), **records}
        changed = {**controller, "metadata": {**metadata, "annotations": annotations}}
        objects = {**objects, CONTROLLER: changed}
        shown = " and ".join(f"{name}: {value}" for name, value in records.items())
        notes.insert(
            0, f"kept: only pods of some namespaces are sent, as {CONTROLLER} records ({shown})"
        )
    return objects, notes


def _alike(expression: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    values = tuple(sorted(expression.get("values") or ()))
    return expression["key"], expression["operator"], values


def _is_within(expression: Mapping[str, Any], more: Mapping[str, Any]) -> bool:
    """Return whether the second expression excludes all that the first does."""
    return (
        expression["operator"] == more["operator"] == "NotIn"
        and expression["key"] == more["key"]
        and {*expression["values"]} <= {*more["values"]}
    )
