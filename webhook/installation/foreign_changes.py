"""What others have written into the objects of an installation, and what a write makes of it.

Each object says who wrote its fields (metadata.managedFields; the form is FieldsV1 of
sigs.k8s.io/structured-merge-diff). No manager owns a field that is gone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook import names, suspension
from webhook.installation.restoring import is_record
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Json = Mapping[str, Any]
    Path = tuple[str, ...]

_OURS: Final = (
    names.INSTALL_MANAGER,
    names.CERTIFICATES_MANAGER,
    names.CONTROLLER,
    suspension.FIELD_MANAGER,
)
_ABSENT: Final = object()
# Characters of a value in a line.
_VALUE_MAX_CHARACTERS: Final = 160


def foreign_paths(live: Json) -> dict[Path, str]:
    """Return the fields of an object that only others have written, each with its manager.

    Of metadata, that is labels and the annotations that record what is intercepted.
    """
    others: dict[Path, str] = {}
    ours: set[Path] = set()
    for entry in live["metadata"].get("managedFields") or ():
        paths = [path for path in _leaves(entry.get("fieldsV1") or {}) if _counts(path)]
        if entry.get("manager") in _OURS:
            ours.update(paths)
        elif entry.get("subresource") != "status":
            others.update(dict.fromkeys(paths, str(entry.get("manager"))))
    return {path: manager for path, manager in others.items() if path not in ours}


def foreign_losses(live: Json, after: Json) -> dict[str, str]:
    """Return what others wrote and a write changes: a text by the path of each field."""
    text_by_path: dict[str, str] = {}
    for path, manager in foreign_paths(live).items():
        was = _value(live, path)
        if was is _ABSENT or _value(after, path) == was:
            continue
        # A whole entry that goes is one loss.
        at = next(
            (
                path[:length]
                for length in range(1, len(path) + 1)
                if _value(after, path[:length]) is _ABSENT
            ),
            path,
        )
        for name, text in _differences(path_text(at), _value(live, at), _value(after, at)):
            text_by_path[name] = f"{text} ({_writer(manager)} wrote it)"
    return text_by_path


def returning(live: Json, last: Json, wanted: Json) -> dict[str, str]:
    """Return what the installation of last time had, and somebody removed: a text by its path."""
    text_by_path: dict[str, str] = {}
    for field in last:
        if field == "metadata":
            now, then, new = (
                document[field].get("labels") or {} for document in (live, last, wanted)
            )
            text_by_path |= _returning(now, then, new, ("f:metadata", "f:labels"))
        elif field in live and field in wanted:
            text_by_path |= _returning(live[field], last[field], wanted[field], (f"f:{field}",))
    return text_by_path


def _returning(live: Any, last: Any, wanted: Any, at: Path) -> Iterator[tuple[str, str]]:
    for element, value in _children(last):
        path, then, now = (*at, element), _child(wanted, element), _child(live, element)
        # The API server stores no empty value; programs write a caBundle that is missing.
        if then is _ABSENT or not value or element == "f:caBundle":
            continue
        if now is _ABSENT:
            yield path_text(path), f"{path_text(path)} is set again, to {_shown(then)}"
        else:
            yield from _returning(now, value, then, path)


def differences(live: Json, rendered: Json, *, shared: bool) -> list[str]:
    """Return in what an object is not as it is rendered, without the right to write of a dry run.

    What the API server fills in is no difference, and neither are labels of others, and annotations
    beside the records. shared: what others add to an object of this kind stays.
    """
    text_by_path: dict[str, str] = {}
    for field, wanted in rendered.items():
        if field == "metadata":
            metadata = live["metadata"]
            annotations = wanted.get("annotations") or {}
            records = {name: value for name, value in annotations.items() if is_record(name)}
            for at, some in (("labels", wanted.get("labels") or {}), ("annotations", records)):
                text_by_path |= _lacks(metadata.get(at) or {}, some, ("f:metadata", f"f:{at}"))
        elif field not in ("apiVersion", "kind", "status"):
            text_by_path |= _lacks(live.get(field, _ABSENT), wanted, (f"f:{field}",), shared=shared)
    if not shared and set(rendered) - {"apiVersion", "kind", "metadata", "status"}:
        for path, manager in foreign_paths(live).items():
            if path[0] != "f:metadata" and _value(rendered, path) is _ABSENT:
                text = f"has {path_text(path)} in addition: {_shown(_value(live, path))}"
                text_by_path.setdefault(path_text(path), f"{text} ({_writer(manager)} wrote it)")
    return list(text_by_path.values())


def _lacks(live: Any, wanted: Any, at: Path, *, shared: bool = True) -> Iterator[tuple[str, str]]:
    """Yield what of a rendered value is not so, or not there, with its path."""
    path = path_text(at)
    if live is _ABSENT or live is None:
        # The API server stores no empty value.
        if wanted not in ({}, [], "", None):
            yield path, f"lacks {path}: {_shown(wanted)}"
    elif isinstance(wanted, dict) and isinstance(live, dict):
        for name, value in wanted.items():
            yield from _lacks(live.get(name, _ABSENT), value, (*at, f"f:{name}"), shared=shared)
    elif isinstance(wanted, list) and isinstance(live, list):
        named = dict(_children(wanted))
        left = list(live)
        for number, value in enumerate(wanted):
            item = next(
                (element for element in left if not [*_lacks(element, value, at, shared=shared)]),
                _ABSENT,
            )
            if item is not _ABSENT:
                left.remove(item)
                continue
            name = next((name for name, same in named.items() if same is value), "")
            if name and (item := _child(live, name)) is not _ABSENT:
                left = [element for element in left if element is not item]
                yield from _lacks(item, value, (*at, name), shared=shared)
            else:
                yield f"{path}[{number}]", f"lacks {_shown(value)} of {path}"
        for element in () if shared else left:
            yield f"{path}+{live.index(element)}", f"has {_shown(element)} of {path} in addition"
    elif live != wanted:
        yield path, f"has {path} {_shown(live)}, and {_shown(wanted)} was installed"


def _writer(manager: str) -> str:
    # The API server's word for a client that does not name itself.
    return "another client" if manager == "unknown" else manager


def content(document: Json) -> Json:
    """Return what an installation writes of an object, without caBundles.

    Programs write those, and the status, all the time.
    """
    metadata = document["metadata"]
    annotations = metadata.get("annotations") or {}
    fairlead_annotations = {
        name: value for name, value in annotations.items() if names.GROUP in name
    }
    fields = {
        field: value for field, value in document.items() if field not in ("metadata", "status")
    }
    if "webhooks" in fields:
        fields["webhooks"] = [
            {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": ""}}
            for webhook in fields["webhooks"]
        ]
    return {**fields, "labels": metadata.get("labels") or {}, "annotations": fairlead_annotations}


def last_writer(live_object: Json) -> str:
    """Return the manager that wrote the object last."""
    managers = live_object["metadata"].get("managedFields") or ()
    times = [(str(entry.get("time") or ""), str(entry.get("manager"))) for entry in managers]
    return _writer(max(times, default=("", "unknown"))[1])


def path_text(path: Path) -> str:
    """Return a path as people write it: spec.ports[port=443,protocol=TCP].name."""
    text = ""
    for element in path:
        kind, _, name = element.partition(":")
        if kind == "k":
            keys = json.loads(name)
            key_name = keys.get("name") if len(keys) == 1 else None
            text += f"[{key_name or ','.join(f'{key}={value}' for key, value in keys.items())}]"
        elif kind == "f" and "." not in name and "/" not in name:
            text += f".{name}" if text else name
        else:
            text += f"[{name}]"
    return text


def _counts(path: Path) -> bool:
    match path:
        case ("f:metadata", "f:labels", _, *_):
            return True
        case ("f:metadata", "f:annotations", name, *_):
            return is_record(name.partition(":")[2])
        case _:
            return path[0] not in ("f:metadata", "f:status")


def _leaves(fields: Json, at: Path = ()) -> Iterator[Path]:
    for element, more in fields.items():
        if element == ".":
            continue
        if set(more) - {"."}:
            yield from _leaves(more, (*at, element))
        else:
            yield (*at, element)


def _value(value: Any, path: Path) -> Any:
    for element in path:
        value = _child(value, element)
    return value


def _child(parent: Any, element: str) -> Any:
    kind, _, name = element.partition(":")
    if kind == "f":
        return parent.get(name, _ABSENT) if isinstance(parent, dict) else _ABSENT
    if not isinstance(parent, list):
        return _ABSENT
    if kind == "i":
        return parent[int(name)] if int(name) < len(parent) else _ABSENT
    wanted = json.loads(name)
    if kind == "v":
        return wanted if wanted in parent else _ABSENT
    for item in parent:
        if isinstance(item, dict) and all(item.get(key) == value for key, value in wanted.items()):
            return item
    return _ABSENT


def _children(parent: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a map, and the items of a list that have a name."""
    if isinstance(parent, dict):
        for name, value in parent.items():
            yield f"f:{name}", value
    elif isinstance(parent, list) and all(
        isinstance(item, dict) and "name" in item for item in parent
    ):
        for item in parent:
            yield f"k:{json.dumps({'name': item['name']})}", item


def _differences(at: str, was: Any, will: Any) -> Iterator[tuple[str, str]]:
    """Yield what a value loses, in as small parts as it can be said."""
    if will is _ABSENT:
        yield at, f"loses {at}: {_shown(was)}"
    elif isinstance(was, dict) and isinstance(will, dict) and was:
        for name in was:
            if was[name] != will.get(name, _ABSENT):
                yield from _differences(f"{at}.{name}", was[name], will.get(name, _ABSENT))
    elif isinstance(was, list) and isinstance(will, list):
        yield from _list_differences(at, was, will)
    else:
        yield at, f"{at} changes from {_shown(was)} to {_shown(will)}"


def _list_differences(
    at: str, was: Sequence[Any], will: Sequence[Any]
) -> Iterator[tuple[str, str]]:
    gone = [item for item in was if item not in will]
    new = [item for item in will if item not in was]
    if len(gone) == len(new) == 1 and isinstance(gone[0], dict):
        yield from _differences(f"{at}[{was.index(gone[0])}]", gone[0], new[0])
        return
    for item in gone:
        yield f"{at}[{was.index(item)}]", f"loses {_shown(item)} of {at}"
    for item in new:
        yield f"{at}+{will.index(item)}", f"{at} has {_shown(item)} again"
    if not gone and not new:
        yield at, f"{at} is brought back into its order"


def _shown(value: Any) -> str:
    return cut(value if isinstance(value, str) else json.dumps(value), _VALUE_MAX_CHARACTERS)
