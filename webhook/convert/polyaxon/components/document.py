"""A component, or an operation over one, as the spec of a Run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components import params, shortcuts
from webhook.convert.polyaxon.components.distributed import distributed
from webhook.convert.polyaxon.components.pod import Given, pod
from webhook.convert.polyaxon.components.runtimes import REFUSED, RUNTIMES, SERVICE
from webhook.convert.polyaxon.draft import given, settled
from webhook.convert.polyaxon.made import Made
from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.templates import bound
from webhook.convert.polyaxon.values import want_flag, want_list, want_one_of, want_whole
from webhook.strict import guess, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.asked import Wanted
    from webhook.convert.polyaxon.components.pod import Pod
    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes
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
_IDLE: Final = "whether a service is idle Fairlead does not know; set termination.timeout"
_POLICY: Final = (
    "Fairlead tells a lost node from a failure of the program by itself; disruptions do not count "
    "against backoffLimit"
)
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_UNLIMITED: Final = ("ray", "dask")
_NO_LIMIT: Final = (
    "there a worker is replaced however often it fails; here backoffLimit counts its failures, and "
    "is 3 unless termination.maxRetries says otherwise"
)
_CLEAN: Final = ("All", "Running", "None")
_ONE: Final = "a service is one pod here; write a Deployment for more"
_SINGLE_LEFT_OUT: Final = {
    "rewrite_path": "there is no gateway that would rewrite paths",
    "is_external": "there is no gateway; put an Ingress before the Run's Service",
}
_EXIT_CODE: Final = "goes with distributed runtimes only; it is left out"
# What the command or the image is called.
_KINDS: Final = (
    ("notebook", re.compile(r"\bjupyter|\bnotebook|\brstudio\b|\bcode-server\b")),
    ("tensorboard", re.compile(r"\btensorboard\b")),
)


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


def termination(
    item: Item | None, clean: Item | None, runtime: PolyaxonRuntime, run: Item, notes: Notes
) -> dict[str, Draft]:
    """Fields of a Run's spec. `clean` is the cleanPodPolicy of the runtime, which is in `run`."""
    serving = runtime.kind == "service"
    limited = runtime.framework not in _UNLIMITED
    result: dict[str, Draft] = {}
    if limited and not serving:
        result["backoffLimit"] = 0
    if not serving:
        result["cleanPodPolicy"] = "All"
    if item is not None:
        _read(Section(item, notes, camel=True), result, serving=serving)
    if not limited and "backoffLimit" not in result:
        notes.warning(run.entries["kind"], _NO_LIMIT, key=False)
    if clean is not None:
        word = want_one_of(clean.saying(clean.written.capitalize()), notes, _CLEAN)
        result["cleanPodPolicy"] = None if word is None else clean.saying(word)
    return result


def _read(section: Section, result: dict[str, Draft], *, serving: bool) -> None:
    notes = section.notes
    if (retries := _number(section, "max_retries", 0)) is not None:
        if serving:
            notes.warning(retries, _DEPLOYED)
        else:
            result["backoffLimit"] = retries
    if (timeout := _number(section, "timeout", 1)) is not None:
        result["maxAgeSeconds" if serving else "activeDeadlineSeconds"] = timeout
    if (ttl := _number(section, "ttl", 0)) is not None:
        result["ttlSecondsAfterFinished"] = ttl
        # They stay as long as the Run does.
        result.pop("cleanPodPolicy", None)
    section.leave({"culling": _IDLE, "probe": _IDLE, "pod_failure_policy": _POLICY})
    section.close()


def _number(section: Section, name: str, least: int) -> Item | None:
    item = section.given(name)
    number = None if item is None else want_whole(item, section.notes, least=least)
    return None if item is None or number is None else item.holding(number)


def job(section: Section, shared: Given) -> dict[str, Draft]:
    """The spec's part of a job."""
    made = pod(section, shared)
    policy = made.environment.restart_policy
    if policy is not None and policy.written == "ExitCode":
        section.notes.warning(policy, _EXIT_CODE)
    return _alone(made)


def service(section: Section, shared: Given) -> dict[str, Draft]:
    """The spec's part of a service, of the kind that it seems to be."""
    notes = section.notes
    made = pod(section, shared)
    ports: list[Draft] = []
    listed = section.given("ports")
    items = want_list(listed, notes) if listed else ()
    for item in items:
        number = want_whole(item, notes, least=1)
        if number is not None:
            port = item.holding(number)
            ports.append({"port": port} if len(items) == 1 else _named(port, number))
    replicas = section.given("replicas")
    if replicas is not None and want_whole(replicas, notes) not in (None, 1):
        notes.warning(replicas, _ONE)
    section.leave(_SINGLE_LEFT_OUT)
    return {"kind": _kind(made), **_alone(made), **given(ports=ports)}


def _named(port: Draft, number: int) -> dict[str, Draft]:
    return {"name": f"port-{number}", "port": port}


def _alone(made: Pod) -> dict[str, Draft]:
    template: Draft = {"spec": made.spec(with_resources=True)}
    return given(environment=made.environment.placement, template=template)


def _kind(made: Pod) -> str:
    words = [made.main.get(field) for field in ("command", "args", "image")]
    text = " ".join(str(settled(each)) for each in words if each is not None).lower()
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "service")
