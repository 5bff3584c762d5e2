"""Convert a component, or an operation over one, to the spec of a Run.

Above 300 lines: a component is read with the params that an operation gives to its inputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components import shortcuts
from webhook.convert.polyaxon.components.component_pod import SharedSettings, pod
from webhook.convert.polyaxon.components.distributed import distributed
from webhook.convert.polyaxon.components.shortcuts import REFUSED, RUNTIMES, SERVICE
from webhook.convert.polyaxon.draft import Converted, non_empty, settled
from webhook.convert.polyaxon.item import Section
from webhook.convert.polyaxon.templates import Params, as_text, bound, resolved
from webhook.convert.polyaxon.values import (
    want_flag,
    want_list,
    want_mapping,
    want_one_of,
    want_text,
    want_whole,
)
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.convert.polyaxon.components.component_pod import Pod
    from webhook.convert.polyaxon.draft import ConversionOptions, Draft, Notes
    from webhook.convert.polyaxon.item import Item
    from webhook.frameworks.framework import PolyaxonRuntime

_ORDER: Final = "a Run waits for no other; create it when the others are done"
_LEFT_OUT: Final = {
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
    "Fairlead distinguishes a lost node from a failure of the program; disruptions do not "
    "count against backoffLimit"
)
_DEPLOYED: Final = "a Deployment's pod is started again however often it ends"
_UNLIMITED: Final = ("ray", "dask")
_NO_LIMIT: Final = (
    "there a worker is replaced however often it fails; here backoffLimit counts its "
    "failures, and is 3 unless termination.maxRetries sets another number"
)
_CLEAN: Final = ("All", "Running", "None")
_ONE: Final = "a service is one pod here; write a Deployment for more"
_SINGLE_LEFT_OUT: Final = {
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
# Keys that distinguish a param in long form from one whose value is a mapping.
_AT_LENGTH: Final = frozenset({"value", "ref", "context_only", "connection", "to_init", "to_env"})
_REFERENCE: Final = "its value is another run's, and only Polyaxon knows it"
_BRINGS: Final = "Polyaxon fetches this; give the pods a volume or an init container instead"
_MISSING: Final = "has no value: give it in params, or on the command line: --param {name}=…"


def convert_component(
    document: Item, wanted: ConversionOptions, overrides: Mapping[str, Item], notes: Notes
) -> Converted:
    """Convert a composed document; fields that a Run cannot have produce warnings."""
    section = Section(document, notes, camel=True)
    known = read_params(section, overrides)
    section.ignore(*_WITHOUT_A_WORD, *shortcuts.FIELDS, "patch_strategy", "run_patch", "component")
    section.ignore("hub_ref", "path_ref", "url_ref", "dag_ref")
    section.refuse(_REFUSED)
    section.leave(_LEFT_OUT)
    result = Converted(
        name=section.non_empty("name"),
        namespace=section.non_empty("namespace"),
        description=section.non_empty("description"),
    )
    plugins, end = section.non_empty("plugins"), section.non_empty("termination")
    run = section.take("run")
    section.close()
    given = SharedSettings(wanted.image, known.env, _shares_memory(plugins, notes))
    runtime = _runtime(run, notes) if run is not None else None
    if run is None or runtime is None:
        return result
    body = Section(bound(run, known.params, notes), notes, camel=True)
    body.ignore("kind")
    clean = body.non_empty("clean_pod_policy")
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
    name = kind.as_text
    if name in REFUSED:
        notes.error(kind, f"is {name}: {REFUSED[name]}")
    elif name not in RUNTIMES:
        hint = guess(name, tuple(RUNTIMES))
        notes.error(kind, f"{quoted(name)} is not one of {', '.join(RUNTIMES)}{hint}")
    return RUNTIMES.get(name)


def _shares_memory(plugins: Item | None, notes: Notes) -> bool:
    """Return True if the pods have a volume at /dev/shm, which is the default of plugins."""
    if plugins is None:
        return True
    shm = plugins.entries.get("shm")
    if not isinstance(plugins.value, dict) or set(plugins.entries) - {"shm"}:
        notes.warning(plugins, _SERVICES)
    return shm is None or shm.value is None or want_flag(shm, notes)


def termination(
    item: Item | None, clean: Item | None, runtime: PolyaxonRuntime, run: Item, notes: Notes
) -> dict[str, Draft]:
    """Return fields of a Run's spec. `clean` is the cleanPodPolicy of the runtime in `run`."""
    serving = runtime.kind == "service"
    limited = runtime.framework not in _UNLIMITED
    result: dict[str, Draft] = {}
    if limited and not serving:
        result["backoffLimit"] = 0
    if not serving:
        result["cleanPodPolicy"] = "All"
    if item is not None:
        _convert_section(Section(item, notes, camel=True), result, serving=serving)
    if not limited and "backoffLimit" not in result:
        notes.warning(run.entries["kind"], _NO_LIMIT, key=False)
    if clean is not None:
        word = want_one_of(clean.with_text(clean.as_text.capitalize()), notes, _CLEAN)
        result["cleanPodPolicy"] = None if word is None else clean.with_text(word)
    return result


def _convert_section(section: Section, result: dict[str, Draft], *, serving: bool) -> None:
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
    item = section.non_empty(name)
    number = None if item is None else want_whole(item, section.notes, least=least)
    return None if item is None or number is None else item.with_value(number)


def job(section: Section, shared: SharedSettings) -> dict[str, Draft]:
    """Return the part of the spec for a job."""
    made = pod(section, shared)
    policy = made.environment.restart_policy
    if policy is not None:
        section.notes.warning(policy, _EXIT_CODE if policy.text == "ExitCode" else _RETRIED)
    return _alone(made)


def service(section: Section, shared: SharedSettings) -> dict[str, Draft]:
    """Return the part of the spec for a service; its kind is guessed."""
    notes = section.notes
    made = pod(section, shared)
    policy = made.environment.restart_policy
    if policy is not None and policy.text != "Always":
        notes.warning(policy, _DEPLOYED)
    ports: list[Draft] = []
    listed = section.non_empty("ports")
    items = want_list(listed, notes) if listed else ()
    for item in items:
        number = want_whole(item, notes, least=1)
        if number is not None:
            port = item.with_value(number)
            ports.append({"port": port} if len(items) == 1 else _named_port(port, number))
    replicas = section.non_empty("replicas")
    if replicas is not None and want_whole(replicas, notes) not in (None, 1):
        notes.warning(replicas, _ONE)
    section.leave(_SINGLE_LEFT_OUT)
    return {"kind": _kind(made), **_alone(made), **non_empty(ports=ports)}


def _named_port(port: Draft, number: int) -> dict[str, Draft]:
    return {"name": f"port-{number}", "port": port}


def _alone(made: Pod) -> dict[str, Draft]:
    template: Draft = {"spec": made.spec(with_resources=True)}
    return non_empty(environment=made.environment.placement, template=template)


def _kind(made: Pod) -> str:
    words = [made.main.get(field) for field in ("command", "args", "image")]
    text = " ".join(str(settled(each)) for each in words if each is not None).lower()
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "service")


@dataclass
class ParamValues:
    """params: for templates. env: the variables of params with toEnv."""

    params: Params
    env: tuple[Draft, ...] = ()


@dataclass
class _Reader:
    notes: Notes
    values: dict[str, Item] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)

    def declared(self, item: Item, *, required: bool, by_others: frozenset[str]) -> None:
        """Read one of inputs or outputs. `by_others`: names with a value elsewhere."""
        section = Section(item, self.notes, camel=True)
        name_of = section.non_empty("name")
        name = want_text(name_of, self.notes) if name_of else None
        value, optional = section.take("value"), section.take("is_optional")
        flag, variable = section.non_empty("is_flag"), section.non_empty("to_env")
        section.leave({"connection": _BRINGS, "to_init": _BRINGS})
        section.ignore("description", "type", "is_list", "arg_format", "validation", "options")
        section.ignore("delay_validation")
        section.close()
        if name is None:
            if name_of is None:
                self.notes.error(item, "is required", below=("name",))
            return
        if flag is not None and want_flag(flag, self.notes):
            self.flags.add(name)
        if variable is not None and (text := want_text(variable, self.notes)):
            self.variables[name] = text
        if value is not None:
            self.values[name] = value
        elif name in by_others:
            return
        elif optional is not None and want_flag(optional, self.notes):
            self.values[name] = item.with_value(None)
        elif required:
            self.notes.error(item, f"the input {name} {_MISSING.format(name=name)}")
            self.elsewhere[name] = ""

    def param(self, name: str, item: Item) -> None:
        """Read one of params: a value, or a mapping with a value."""
        if not isinstance(item.value, dict) or not _AT_LENGTH & {_snake(k) for k in item.entries}:
            self.values[name] = item
            return
        section = Section(item, self.notes, camel=True)
        value, reference = section.take("value"), section.non_empty("ref")
        variable = section.non_empty("to_env")
        section.leave({"connection": _BRINGS, "to_init": _BRINGS})
        section.ignore("context_only")
        section.close()
        if variable is not None and (text := want_text(variable, self.notes)):
            self.variables[name] = text
        if reference is not None:
            self.elsewhere[name] = f"{name}: {_REFERENCE}"
            self.values.pop(name, None)
            self.notes.warning(reference, f"{_REFERENCE}; give a value")
        elif value is not None:
            self.values[name] = value

    def read_values(self) -> ParamValues:
        """Return all values. A variable whose param has no value is left out."""
        params = resolved(Params(self.values, self.elsewhere, frozenset(self.flags)), self.notes)
        env: list[Draft] = []
        for name, variable in self.variables.items():
            value = params.values.get(name)
            if value is not None and value.value is not None:
                env.append({"name": variable, "value": value.with_text(as_text(value))})
        return ParamValues(params, tuple(env))


def read_params(section: Section, overrides: Mapping[str, Item]) -> ParamValues:
    """Read inputs, outputs and params of a document; `overrides` are the command line's."""
    notes = section.notes
    reader = _Reader(notes)
    params = section.non_empty("params")
    written = want_mapping(params, notes) if params else {}
    others = frozenset({*written, *overrides})
    for field_name in ("inputs", "outputs"):
        declared = section.non_empty(field_name)
        for item in want_list(declared, notes) if declared else ():
            reader.declared(item, required=field_name == "inputs", by_others=others)
    for name, item in written.items():
        if name not in overrides:
            reader.param(name, item)
    for name, item in overrides.items():
        reader.values[name] = item
    return reader.read_values()


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
