"""Convert a component, or an operation over one, to the spec of a Run.

Above 300 lines: a component is read with the params that an operation gives to its inputs.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from webhook.convert.polyaxon.components.compose import REFUSED, RUNTIMES, SERVICE, SHORTCUTS
from webhook.convert.polyaxon.components.distributed import distributed
from webhook.convert.polyaxon.draft import Converted, non_empty, settled
from webhook.convert.polyaxon.item import (
    Refused,
    even_empty,
    given,
    ignored,
    read,
    want_flag,
    want_list,
    want_mapping,
    want_one_of,
    want_text,
    want_whole,
)
from webhook.convert.polyaxon.pods import POD, RUNTIME, SharedSettings, pick, pod
from webhook.convert.polyaxon.templates import Params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.convert import ConversionOptions
    from webhook.convert.polyaxon.draft import Draft, Notes
    from webhook.convert.polyaxon.item import FieldReader, Item
    from webhook.convert.polyaxon.pods import Pod
    from webhook.frameworks.framework import PolyaxonRuntime

_ORDER: Final = "a Run waits for no other; create it when the others are done"
_BRINGS: Final = "Polyaxon fetches this; give the pods a volume or an init container instead"
_SERVICES: Final = (
    "logs, artifacts and the rest are Polyaxon's services; here there are kubectl logs, volumes "
    "that you mount, and the Run's events"
)


def _shares_memory(plugins: Item, notes: Notes) -> bool:
    """Return True if the pods have a volume at /dev/shm, which is the default."""
    if not isinstance(plugins.value, dict) or set(plugins.entries) - {"shm"}:
        notes.warning(plugins, _SERVICES)
    shm = plugins.find("shm")
    return shm.value is None or want_flag(shm, notes)


# One of inputs or outputs.
_DECLARED: Final[Mapping[str, FieldReader]] = {
    "name": want_text,
    "value": even_empty,
    "is_optional": even_empty,
    "is_flag": want_flag,
    "to_env": want_text,
    "connection": _BRINGS,
    "to_init": _BRINGS,
    **dict.fromkeys(("description", "type", "is_list", "arg_format", "validation"), ignored),
    **dict.fromkeys(("options", "delay_validation"), ignored),
}
# One of params in its long form.
_PARAM: Final[Mapping[str, FieldReader]] = {
    "value": even_empty,
    "ref": given,
    "to_env": want_text,
    "connection": _BRINGS,
    "to_init": _BRINGS,
    "context_only": ignored,
}
_FIELDS: Final[Mapping[str, FieldReader]] = {
    "inputs": want_list,
    "outputs": want_list,
    "params": want_mapping,
    **dict.fromkeys(("version", "kind", "strict_params", "cost", "template", "is_preset"), ignored),
    **dict.fromkeys(SHORTCUTS, ignored),
    **dict.fromkeys(("patch_strategy", "run_patch", "component"), ignored),
    **dict.fromkeys(("hub_ref", "path_ref", "url_ref", "dag_ref"), ignored),
    "name": given,
    "namespace": given,
    "description": given,
    "plugins": _shares_memory,
    "termination": given,
    "run": even_empty,
    "matrix": Refused(REFUSED["matrix"]),
    "joins": Refused(
        "its values are other runs', and only Polyaxon knows them; give them in params"
    ),
    "tags": "a Run has no tags; give it labels under metadata",
    "presets": "Fairlead has no presets: put their content here, or into a PlacementPolicy",
    "queue": "Fairlead has no queues; give the environment a priorityClassName",
    "cache": "every Run runs; Fairlead does not reuse results of an earlier one",
    "build": "Fairlead builds no images; build it first, and name it with --image",
    "hooks": "Fairlead calls nothing afterwards; watch the Run's events and conditions",
    "actions": "Fairlead calls nothing afterwards; watch the Run's events and conditions",
    "events": _ORDER,
    "dependencies": _ORDER,
    "trigger": _ORDER,
    "conditions": _ORDER,
    "skip_on_upstream_skip": _ORDER,
    "schedule": REFUSED["schedule"],
    "is_approved": "a Run starts when it is created, unless it has suspend: true",
    "mount": "Fairlead mounts no files of yours; they belong into the image or a volume",
}
_IDLE: Final = "whether a service is idle Fairlead does not know; set termination.timeout"
_POLICY: Final = (
    "Fairlead distinguishes a lost node from a failure of the program; disruptions do not "
    "count against backoffLimit"
)
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_UNLIMITED: Final = ("ray", "dask")
_NO_LIMIT: Final = (
    "there a worker is replaced however often it fails; here backoffLimit counts its "
    "failures, and is 3 unless termination.maxRetries sets another number"
)
_TERMINATION: Final[Mapping[str, FieldReader]] = {
    "max_retries": want_whole,
    "timeout": partial(want_whole, least=1),
    "ttl": want_whole,
    "culling": _IDLE,
    "probe": _IDLE,
    "pod_failure_policy": _POLICY,
}
_JOB: Final[Mapping[str, FieldReader]] = {**RUNTIME, **POD}
_SERVICE: Final[Mapping[str, FieldReader]] = {
    **_JOB,
    "ports": want_list,
    "replicas": want_whole,
    "rewrite_path": "there is no gateway that would rewrite paths",
    "is_external": "there is no gateway; put an Ingress before the Run's Service",
}
_RETRIED: Final = (
    "is left out: a job is restarted as often as termination.maxRetries says, each time in a new "
    "pod"
)
_EXIT_CODE: Final = "goes with distributed runtimes only; it is left out"
# Names of the command or the image.
_KINDS: Final = (
    ("notebook", re.compile(r"\bjupyter|\bnotebook|\brstudio\b|\bcode-server\b")),
    ("tensorboard", re.compile(r"\btensorboard\b")),
)
_REFERENCE: Final = "its value is another run's, and only Polyaxon knows it"


def convert_component(
    document: Item, wanted: ConversionOptions, overrides: Mapping[str, Item], notes: Notes
) -> Converted:
    """Convert a composed document; fields that a Run cannot have produce warnings."""
    fields = read(document, notes, _FIELDS)
    params = _read_params(fields, overrides, notes)
    made = Converted(fields.get("name"), fields.get("namespace"), fields.get("description"))
    shared = SharedSettings(wanted.image, tuple(params.env), fields.get("plugins", True))
    run = fields.get("run")
    runtime = _runtime(run, notes) if run is not None else None
    if run is None or runtime is None:
        return made
    end = fields.get("termination")
    end = {} if end is None else read(params.bind(end), notes, _TERMINATION)
    body = params.bind(run)
    convert = distributed if runtime.framework else service if runtime.kind == SERVICE else job
    made.spec = {
        "kind": runtime.kind,
        **termination(end, runtime, run, notes),
        **convert(body, runtime, shared, notes),
    }
    made.replicas = run
    return made


def _runtime(run: Item, notes: Notes) -> PolyaxonRuntime | None:
    kind = run.find("kind")
    if kind.value is None:
        notes.error(run, f"is required: one of {', '.join(RUNTIMES)}", below=("kind",))
    elif kind.as_text in REFUSED:
        notes.error(kind, f"is {kind.as_text}: {REFUSED[kind.as_text]}")
    else:
        want_one_of(kind, notes, tuple(RUNTIMES))
    return RUNTIMES.get(kind.as_text)


def termination(
    end: Mapping[str, Item], runtime: PolyaxonRuntime, run: Item, notes: Notes
) -> dict[str, Draft]:
    """Return fields of a Run's spec, from those of a termination section."""
    serving = runtime.kind == SERVICE
    limited = runtime.framework not in _UNLIMITED
    retries = end.get("maxRetries")
    result: dict[str, Draft] = {}
    if serving:
        if retries is not None:
            notes.warning(retries, _DEPLOYED)
    elif retries is not None or limited:
        result["backoffLimit"] = retries or 0
    if not limited and retries is None:
        notes.warning(run.entries["kind"], _NO_LIMIT, key=False)
    if "timeout" in end:
        result["maxAgeSeconds" if serving else "activeDeadlineSeconds"] = end["timeout"]
    if "ttl" in end:
        # The pods stay as long as the Run does.
        result["ttlSecondsAfterFinished"] = end["ttl"]
    elif not serving:
        result["cleanPodPolicy"] = "All"
    return result


def job(run: Item, _: PolyaxonRuntime, shared: SharedSettings, notes: Notes) -> dict[str, Draft]:
    fields = read(run, notes, _JOB)
    made = pod(run, fields, shared, notes)
    policy = made.environment.restart_policy
    if policy is not None:
        notes.warning(policy, _EXIT_CODE if policy.text == "ExitCode" else _RETRIED)
    return _alone(made, fields)


def service(
    run: Item, _: PolyaxonRuntime, shared: SharedSettings, notes: Notes
) -> dict[str, Draft]:
    """Return the part of the spec for a service; its kind is guessed."""
    fields = read(run, notes, _SERVICE)
    made = pod(run, fields, shared, notes)
    policy = made.environment.restart_policy
    if policy is not None and policy.text != "Always":
        notes.warning(policy, _DEPLOYED)
    listed = fields.get("ports", ())
    ports = [
        port for element in listed if (port := want_whole(element, notes, least=1)) is not None
    ]
    replicas = fields.get("replicas")
    if replicas is not None and replicas.value != 1:
        notes.warning(replicas, "a service is one pod here; write a Deployment for more")
    several = len(listed) > 1
    named: list[Draft] = [
        {**({"name": f"port-{port.value}"} if several else {}), "port": port} for port in ports
    ]
    return {"kind": _kind(made), **_alone(made, fields), **non_empty(ports=named)}


def _alone(made: Pod, fields: Mapping[str, Draft]) -> dict[str, Draft]:
    template: Draft = {"spec": made.spec(with_resources=True)}
    placed = non_empty(environment=made.environment.placement, template=template)
    return {**placed, **pick(fields, ("clean_pod_policy",))}


def _kind(made: Pod) -> str:
    words = [made.main.get(field) for field in ("command", "args", "image")]
    text = " ".join(str(settled(word)) for word in words if word is not None).lower()
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "service")


def _read_params(fields: Mapping[str, Any], overrides: Mapping[str, Item], notes: Notes) -> Params:
    """Read inputs, outputs and params of a document; `overrides` are the command line's."""
    written = fields.get("params", {})
    params = Params(notes, {*written, *overrides})
    for name in ("inputs", "outputs"):
        for item in fields.get(name, ()):
            params.declare(item, read(item, notes, _DECLARED), required=name == "inputs")
    for name, item in written.items():
        if name not in overrides:
            _read_param(params, name, item)
    params.values.update(overrides)
    params.resolve()
    return params


def _read_param(params: Params, name: str, item: Item) -> None:
    """Read one of params: a value, or a mapping with a value."""
    # Keys that distinguish a param in long form from one whose value is a mapping.
    if not {to_camel(key) for key in _PARAM} & {to_camel(key) for key in item.entries}:
        params.values[name] = item
        return
    fields = read(item, params.notes, _PARAM)
    if "toEnv" in fields:
        params.variables[name] = fields["toEnv"]
    if reference := fields.get("ref"):
        params.elsewhere[name] = f"{name}: {_REFERENCE}"
        params.values.pop(name, None)
        params.notes.warning(reference, f"{_REFERENCE}; give a value")
    elif "value" in fields:
        params.values[name] = fields["value"]
