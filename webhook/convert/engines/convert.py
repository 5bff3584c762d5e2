"""Convert an engine's object to a Run, with a warning for each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.convert.engines.difference import differences
from webhook.convert.engines.extract import (
    extract_batch_job,
    extract_dask,
    extract_job,
    extract_jobset,
    find,
    without_env,
)
from webhook.convert.polyaxon.complete import complete
from webhook.convert.polyaxon.convert import Converted, read_file
from webhook.convert.polyaxon.draft import Notes
from webhook.convert.polyaxon.item import Item, Origin, plain
from webhook.run.backends import batch_job, dask_operator, jobset
from webhook.run.backends.backend import Drafts
from webhook.run.backends.dask_operator import DaskBackend
from webhook.run.backends.jobset import JobSetBackend
from webhook.run.backends.training_operator import KINDS, READ_ONLY, render_job
from webhook.run.plan import drafts
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.convert.polyaxon.complete import Complete
    from webhook.convert.polyaxon.draft import Converted as Made
    from webhook.placement.shapes import JsonObject
    from webhook.run.backends.training_operator import JobKind
    from webhook.run.model import Run

_JOBS: Final[Mapping[tuple[str, str], JobKind]] = {
    (each.api_version, each.kind): each for each in (*KINDS.values(), *READ_ONLY)
}
_OTHERS: Final[Mapping[tuple[str, str], tuple[Callable[[Item], Made], Any]]] = {
    (batch_job.KIND.api_version, batch_job.KIND.kind): (
        extract_batch_job,
        batch_job.render_batch_job,
    ),
    (jobset.KIND.api_version, jobset.KIND.kind): (
        extract_jobset,
        lambda found: JobSetBackend().render(found)[0],
    ),
    (dask_operator.KIND.api_version, dask_operator.KIND.kind): (
        extract_dask,
        lambda found: DaskBackend().render(found)[0],
    ),
}
# All kinds that can be converted, as (apiVersion, kind).
CONVERTIBLE: Final = (*_JOBS, *_OTHERS)
_API_VERSION: Final = "apiVersion"


def is_engine_object(files: Mapping[str, bytes]) -> bool:
    """Return True if a document of the files has an apiVersion, as no Polyaxonfile has."""
    notes = Notes()
    return any(
        _API_VERSION in item.entries
        for file, content in files.items()
        for item in read_file(file, content, notes)
    )


def convert_object(files: Mapping[str, bytes], name: str = "") -> Converted:
    """Return the Run of the one object in the files; `name` replaces the object's.

    Never raises, whatever is in the files.
    """
    notes = Notes()
    items = [item for file, text in files.items() for item in read_file(file, text, notes)]
    if not notes.errors:
        _select(items, files, notes)
    if notes.errors:
        return Converted(None, None, notes.in_order)
    done = _convert(items[0], name, notes)
    if done is None:
        return Converted(None, None, notes.in_order)
    return Converted(done.document, done.run, notes.in_order)


def _select(items: list[Item], files: Mapping[str, bytes], notes: Notes) -> None:
    """Note an error unless there is one document, of a known kind."""
    for item in items[1:]:
        notes.error(item, "is one document more; a Run is made of one object")
    if not items:
        notes.error(Origin(next(iter(files)), (1, 1), (1, 1)), "it has no object")
        return
    version, kind = find(items[0], _API_VERSION), find(items[0], "kind")
    if (version.value, kind.value) in CONVERTIBLE:
        return
    kinds = tuple(dict.fromkeys(each for _, each in CONVERTIBLE))
    versions = [known for known, each in CONVERTIBLE if each == kind.value]
    if versions:
        what = f"is {quoted(version.value)}; of {kind.value} want {' or '.join(versions)}"
        notes.error(version, what)
        return
    hint = guess(str(kind.value), kinds)
    at = kind if kind.value is not None else items[0]
    notes.error(at, f"{quoted(kind.value)} is not one of {', '.join(kinds)}{hint}")


def _convert(item: Item, name: str, notes: Notes) -> Complete | None:
    key = (find(item, _API_VERSION).as_text, find(item, "kind").as_text)
    job = _JOBS.get(key)
    extract: Callable[[Item], Made]
    render: Callable[[Drafts], JsonObject]
    if job is not None:
        extract, render = lambda each: extract_job(each, job), lambda each: render_job(each, job)
    else:
        extract, render = _OTHERS[key]
    made = extract(item)
    done = complete(made, item, name, notes)
    if done is not None and key[1] == jobset.KIND.kind and done.run.spec.framework:
        found = _drafts(done.run)
        without_env(made, {role: jobset.own_env(found, role) for role in found.roles})
        done = complete(made, item, name, notes)
    if done is None:
        return None
    given = plain(item)
    if name:
        given = {**given, "metadata": {**given.get("metadata", {}), "name": name}}
    for path, message in differences(given, render(_drafts(done.run))):
        notes.warning(_at(item, path), message)
    return done


def _drafts(run: Run) -> Drafts:
    return Drafts(run, {each.role: each for each in drafts(run)[0] if each.index is None})


def _at(item: Item, path: tuple[str | int, ...]) -> Item:
    for step in path:
        item = item.elements[step] if isinstance(step, int) else item.entries[step]
    return item
