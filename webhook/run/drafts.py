"""Each role's template and placement, with all layers upon them, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.policy.findings import path_text
from webhook.run.environment import bottom, upon
from webhook.run.template import merged
from webhook.run.template_checks import template_problems
from webhook.strict import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webhook.placement.schema.placement import PlacementModel
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Path
    from webhook.run.layers import Placement
    from webhook.run.model import Resources, Run

_TEMPLATE: Final[Path] = ("spec", "template")


@dataclass(frozen=True, slots=True)
class Draft:
    """What like replicas are to be: of a role (`index` is None), or the one that differs.

    main: the name of the main container; resources: what it gets instead of the template's, if
    anything.
    """

    role: str
    index: int | None
    template: JsonObject
    placement: Placement
    resources: JsonObject | None
    main: str

    @property
    def container(self) -> JsonObject:
        """The main container, as the template has it."""
        found: JsonObject = next(
            each for each in self.template["spec"]["containers"] if each["name"] == self.main
        )
        return found

    @property
    def asked(self) -> Mapping[str, object] | None:
        """The resources of the main container."""
        if self.resources is not None:
            return self.resources
        own = self.container.get("resources")
        return own if isinstance(own, dict) else None


def drafts(run: Run) -> tuple[list[Draft], list[str]]:
    """The drafts of every role and of every replica that differs, in the framework's order, and
    problems; a role whose template is wrong has no draft."""
    found: list[Draft] = []
    serving = run.spec.serving
    problems = [*_environment_problems(run)]
    wrong = [*template_problems(run.spec.template, _TEMPLATE, serving=serving)]
    problems += wrong
    without: dict[str, list[JsonObject]] = {}
    for role, replica in run.spec.roles.items():
        over = replica.template or {}
        at: Path = ("spec", "replicas", role, "template") if replica.template else _TEMPLATE
        own = [*template_problems(over, at, serving=serving)]
        problems += own
        template = merged(merged({}, run.spec.template), over)
        containers = _containers(template)
        lacking = _lacking(containers, at)
        problems += [line for line in lacking if line not in problems]
        if run.spec.main_container not in (None, *(each["name"] for each in containers)):
            without[role] = containers
        if wrong or own or lacking or role in without:
            continue
        main = run.spec.main_container or containers[0]["name"]
        resources = _json(replica.resources)
        placement = upon(bottom(template), (run.spec.environment, replica.environment))
        found.append(Draft(role, None, template, placement, resources, main))
        for entry in replica.by_index or ():
            special = resources if entry.resources is None else _json(entry.resources)
            there = upon(placement, (entry.environment,))
            found.append(Draft(role, entry.index, template, there, special, main))
    if without:
        problems.append(_no_main(run.spec.main_container, without))
    return found, problems


def _json(resources: Resources | None) -> JsonObject | None:
    if resources is None:
        return None
    return resources.model_dump(by_alias=True, exclude_none=True)


def _containers(template: JsonObject) -> list[JsonObject]:
    """The containers of a merged template, as far as it has any shape."""
    spec = template.get("spec", {})
    found = spec.get("containers") if isinstance(spec, dict) else None
    objects = found if isinstance(found, list) else []
    return [
        each for each in objects if isinstance(each, dict) and isinstance(each.get("name"), str)
    ]


def _lacking(containers: list[JsonObject], at: Path) -> list[str]:
    """What a merged template has to have, wherever it comes from."""
    where = path_text((*at, "spec", "containers"))
    if not containers:
        return [f"{where}: there is no container; give one, with a name and an image"]
    return [
        f"{where}: container {shown(each['name'])} has no image; give it one"
        for each in containers
        if not each.get("image")
    ]


def _no_main(wanted: str | None, without: Mapping[str, list[JsonObject]]) -> str:
    have = "has" if len(without) == 1 else "have"
    there = dict.fromkeys(each["name"] for some in without.values() for each in some)
    return (
        f"spec.mainContainer: {', '.join(without)} {have} no container {shown(wanted)}; "
        f"want one of {', '.join(there) or 'those of the template'}"
    )


def _environment_problems(run: Run) -> Iterator[str]:
    """An environment asks for capacity by its field: the annotation would hide what it says."""
    for at, environment in _environments(run):
        if environment is not None and names.CAPACITY in (environment.annotations or ()):
            path = path_text((*at, "annotations", names.CAPACITY))
            yield f"{path}: an environment asks by its field capacity; write it there"


def _environments(run: Run) -> Iterator[tuple[Path, PlacementModel | None]]:
    yield ("spec", "environment"), run.spec.environment
    for role, replica in run.spec.roles.items():
        at: Path = ("spec", "replicas", role)
        yield (*at, "environment"), replica.environment
        for position, entry in enumerate(replica.by_index or ()):
            yield (*at, "byIndex", position, "environment"), entry.environment
