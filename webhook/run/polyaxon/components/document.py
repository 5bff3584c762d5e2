"""A component, or an operation over one, as the spec of a Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run.polyaxon.components import params, shortcuts
from webhook.run.polyaxon.components.distributed import distributed
from webhook.run.polyaxon.components.pod import Given
from webhook.run.polyaxon.components.runtimes import REFUSED, RUNTIMES, SERVICE
from webhook.run.polyaxon.components.single import job, service
from webhook.run.polyaxon.components.termination import termination
from webhook.run.polyaxon.made import Made
from webhook.run.polyaxon.section import Section
from webhook.run.polyaxon.templates import bound
from webhook.run.polyaxon.values import want_flag
from webhook.strict import guess, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.run.polyaxon.asked import Wanted
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes
    from webhook.run.rendezvous.framework import PolyaxonRuntime

_ORDER: Final = "a Run waits for no other; create it when the others are done"
_LEFT_OUT: Final = {
    "tags": "a Run has no tags; give it labels under metadata",
    "presets": "Fairlead has no presets: what they say belongs here, or in a PlacementPolicy",
    "queue": "Fairlead has no queues; give the environment a priorityClassName",
    "cache": "every Run runs; nothing of an earlier one is taken for it",
    "build": "Fairlead builds no images; build it first, and name it with --image",
    "hooks": "Fairlead calls nothing afterwards; watch the Run's events and conditions",
    "actions": "Fairlead calls nothing afterwards; watch the Run's events and conditions",
    "events": _ORDER,
    "dependencies": _ORDER,
    "trigger": _ORDER,
    "conditions": _ORDER,
    "skip_on_upstream_skip": _ORDER,
    "schedule": REFUSED["schedule"],
    "is_approved": "a Run starts when it is created, unless it says suspend: true",
    "mount": "Fairlead mounts no files of yours; they belong into the image or a volume",
}
_REFUSED: Final = {
    "matrix": REFUSED["matrix"],
    "joins": "its values are other runs', and only Polyaxon knows them; give them in params",
}
_SERVICES: Final = (
    "logs, artifacts and the rest are Polyaxon's services; here there are kubectl logs, volumes "
    "that you mount, and the Run's events"
)
_WITHOUT_A_WORD: Final = ("version", "kind", "strict_params", "cost", "template", "is_preset")


def made(document: Item, wanted: Wanted, overrides: Mapping[str, Item], notes: Notes) -> Made:
    """Everything of a composed document that a Run can have."""
    section = Section(document, notes, camel=True)
    known = params.read(section, overrides)
    section.ignore(*_WITHOUT_A_WORD, *shortcuts.FIELDS, "patch_strategy", "run_patch", "component")
    section.ignore("hub_ref", "path_ref", "url_ref", "dag_ref")
    section.refuse(_REFUSED)
    section.leave(_LEFT_OUT)
    result = Made(
        name=section.given("name"),
        namespace=section.given("namespace"),
        description=section.given("description"),
    )
    plugins, end = section.given("plugins"), section.given("termination")
    run = section.take("run")
    section.close()
    given = Given(wanted.image, known.env, _shares_memory(plugins, notes))
    runtime = _runtime(run, notes) if run is not None else None
    if run is None or runtime is None:
        return result
    body = Section(bound(run, known.params, notes), notes, camel=True)
    body.ignore("kind")
    clean = body.given("clean_pod_policy")
    if end is not None:
        end = bound(end, known.params, notes)
    result.spec = {"kind": runtime.kind}
    result.replicas = run
    if runtime.framework:
        result.spec |= distributed(body, runtime, given)
    else:
        result.spec |= service(body, given) if runtime.kind == SERVICE else job(body, given)
    body.close()
    result.spec |= termination(end, clean, runtime, run, notes)
    return result


def _runtime(run: Item, notes: Notes) -> PolyaxonRuntime | None:
    kind = run.entries.get("kind")
    if kind is None or kind.value is None:
        notes.error(run, f"is required: one of {', '.join(RUNTIMES)}", below=("kind",))
        return None
    name = kind.written
    if name in REFUSED:
        notes.error(kind, f"is {name}: {REFUSED[name]}")
    elif name not in RUNTIMES:
        hint = guess(name, tuple(RUNTIMES))
        notes.error(kind, f"{shown(name)} is not one of {', '.join(RUNTIMES)}{hint}")
    return RUNTIMES.get(name)


def _shares_memory(plugins: Item | None, notes: Notes) -> bool:
    """Whether the pods have a volume at /dev/shm, as they do unless plugins say otherwise."""
    if plugins is None:
        return True
    shm = plugins.entries.get("shm")
    if not isinstance(plugins.value, dict) or set(plugins.entries) - {"shm"}:
        notes.warning(plugins, _SERVICES)
    return shm is None or shm.value is None or want_flag(shm, notes)
