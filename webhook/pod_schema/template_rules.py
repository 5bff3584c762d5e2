"""Rules of the API server for pod templates: names, volumes, resources, env.

Source: pkg/apis/core/validation of Kubernetes 1.36. Values of a wrong type are skipped:
webhook.pod_schema.field_checks reports them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webhook.dns_names import is_label
from webhook.placement.quantity import NANOS, InvalidQuantity, nanos
from webhook.placement.schema.syntax import qualified_name_fault
from webhook.pod_schema import object_rules, text_rules, value_rules
from webhook.pod_schema.field_checks import MAX_FAULTS, Fault, mappings
from webhook.strict import guess, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.pod_schema.field_checks import Path

_CONTAINERS: Final = ("initContainers", "containers")
_LABEL: Final = "is not a name: want at most 63 of a-z, 0-9 and '-', a letter or digit at both ends"
# Resources without a domain that a container may request, apart from hugepages-SIZE.
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE: Final = "hugepages-"
# Maximum number of volumes for which a misspelt name is matched.
_LISTED: Final = 32


def faults(spec: Any, *, volumes: Collection[str] = (), more_volumes: bool = False) -> list[Fault]:
    """Return the faults of a pod's spec, paths relative to it, at most 50.

    `volumes`: names of volumes that its controller adds. `more_volumes`: the controller may add
    others and may set the image, so a mount without a volume is a warning.
    """
    if not isinstance(spec, dict):
        return []
    return list(islice(_faults(spec, volumes, more_volumes=more_volumes), MAX_FAULTS))


def _faults(
    spec: Mapping[str, Any], volumes: Collection[str], *, more_volumes: bool
) -> Iterator[Fault]:
    pod_volumes = list(mappings(spec.get("volumes"), ("volumes",)))
    yield from _names(pod_volumes)
    yield from _resources(spec.get("resources"), ("resources",))
    names = (volume.get("name") for _, volume in pod_volumes)
    volume_names = frozenset((*(name for name in names if isinstance(name, str)), *volumes))
    containers = [pair for key in _CONTAINERS for pair in mappings(spec.get(key), (key,))]
    yield from _names(containers)
    for path, container in containers:
        yield from _resources(container.get("resources"), (*path, "resources"))
        yield from _mounts(container, path, volume_names, more=more_volumes)
    if not more_volumes:
        yield from _images(containers)
    yield from value_rules.faults(spec)


def metadata_faults(metadata: Any, spec: Any) -> Iterator[Fault]:
    """Yield faults of a pod's spec beside its labels and annotations; paths are of the spec."""
    given = metadata if isinstance(metadata, dict) else {}
    if isinstance(spec, dict):
        labels, annotations = (
            value if isinstance(value := given.get(name), dict) else {}
            for name in ("labels", "annotations")
        )
        yield from text_rules.profile_faults(annotations, spec)
        yield from object_rules.merged_key_faults(spec, labels)


def lasting_faults(spec: Any, kind: str) -> Iterator[Fault]:
    """Yield faults of pods of a kind whose controller replaces pods that end."""
    if isinstance(spec, dict) and spec.get("activeDeadlineSeconds") is not None:
        yield Fault(("activeDeadlineSeconds",), f"is not allowed in pods of a {kind}; remove it")


def container_names(spec: Any) -> frozenset[str]:
    """Return the names of all containers of a pod's spec; it may have a wrong type."""
    given = spec if isinstance(spec, dict) else {}
    every = (container for key in _CONTAINERS for _, container in mappings(given.get(key), (key,)))
    return frozenset(name for container in every if isinstance(name := container.get("name"), str))


def _names(items: list[tuple[Path, dict[str, Any]]]) -> Iterator[Fault]:
    """Check names of volumes or containers: DNS labels, each used once."""
    first: dict[str, Path] = {}
    for path, item in items:
        name = item.get("name")
        if not isinstance(name, str):
            continue
        if not is_label(name):
            yield Fault((*path, "name"), f"{quoted(name)} {_LABEL}")
        elif name in first:
            where = f"{first[name][-2]}[{first[name][-1]}]"
            yield Fault((*path, "name"), f"{quoted(name)} is already used by {where}; rename one")
        else:
            first[name] = path


def _mounts(
    container: Mapping[str, Any], path: Path, volume_names: frozenset[str], *, more: bool
) -> Iterator[Fault]:
    for key, where in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        first: dict[str, Path] = {}
        for at, mount in mappings(container.get(key), (*path, key)):
            name, target = mount.get("name"), mount.get(where)
            if isinstance(name, str) and name not in volume_names:
                cure = _suggest_volume(name, volume_names)
                text = f"the pod has no volume {quoted(name)}{cure}"
                yield Fault((*at, "name"), text, "warning" if more else "error")
            if isinstance(target, str) and first.setdefault(target, at) is not at:
                text = f"{quoted(target)} is already used by {key}[{first[target][-1]}]; keep one"
                yield Fault((*at, where), text)


def _suggest_volume(name: str, volume_names: frozenset[str]) -> str:
    if not volume_names:
        return "; it has none"
    if len(volume_names) > _LISTED:
        return f"; it has {len(volume_names)} others"
    return (
        guess(name, tuple(volume_names)) or f"; the volumes are {', '.join(sorted(volume_names))}"
    )


def _resources(resources: Any, path: Path) -> Iterator[Fault]:
    sides = {}
    for side in ("requests", "limits"):
        amounts = resources.get(side) if isinstance(resources, dict) else None
        sides[side] = amounts if isinstance(amounts, dict) else {}
        for name, amount in sides[side].items():
            if why := _amount_fault(str(name), _nanos(amount)):
                yield Fault((*path, side, name), f"{amount} {why}")
            elif why := _resource_fault(str(name), of_pod=len(path) == 1):
                yield Fault((*path, side, name), why, at_key=True)
    named = [str(name) for side in sides.values() for name in side]
    huge = next((name for name in named if name.startswith(_HUGE)), "")
    if huge and not {"cpu", "memory"}.intersection(named):
        yield Fault(path, f"{huge} requires cpu or memory in the same container")
    limits = sides["limits"]
    for name, amount in sides["requests"].items():
        asked, most = _nanos(amount), _nanos(limits.get(name))
        here = (*path, "requests", name)
        if asked is None or (most is None and name in limits and limits[name] is not None):
            continue
        if most is None:
            if _is_whole(str(name)):
                yield Fault(here, f"{name} needs a limit as high: add limits.{name}: {amount}")
        elif asked > most:
            yield Fault(here, f"{amount} is above its limit, {limits[name]}; raise limits.{name}")
        elif asked < most and _is_whole(str(name)):
            text = (
                f"{amount} is not its limit, {limits[name]}; request and limit of {name} must be "
                "equal"
            )
            yield Fault(here, text)


def _amount_fault(name: str, amount: int | None) -> str:
    if amount is None:
        return ""
    if amount < 0:
        return "is negative"
    if "/" in name and amount % NANOS:
        return f"is not a whole number, and {name} takes whole numbers only"
    size = _nanos(name.removeprefix(_HUGE)) if name.startswith(_HUGE) else None
    if size and size > 0 and amount % size:
        return f"is not a multiple of {name.removeprefix(_HUGE)}"
    return ""


def _resource_fault(name: str, *, of_pod: bool) -> str:
    """Return why a container, or the pod as a whole, cannot request a resource of this name."""
    if name.startswith(_HUGE) or name in _NATIVE[:2] or (not of_pod and name in _NATIVE):
        return ""
    if of_pod:
        return f"{quoted(name)} is not one of cpu, memory and {_HUGE}SIZE, as of a whole pod"
    if "/" not in name:
        # "gpu" is close to "cpu" by its letters only, so it gets no suggestion.
        near = guess(name, _NATIVE) if name[:1] in "cme" else ""
        cure = near or "; others have a domain, as nvidia.com/gpu"
        return f"{quoted(name)} is not one of {', '.join(_NATIVE)}, {_HUGE}SIZE{cure}"
    if name.startswith("requests."):
        return f"{quoted(name)} is for quotas only; want {name.removeprefix('requests.')}"
    why = qualified_name_fault(name)
    return f"{quoted(name)} is not a resource: {why}" if why else ""


def _is_whole(name: str) -> bool:
    """Return True if a resource cannot be overcommitted: huge pages, devices of other domains."""
    return name.startswith("hugepages-") or ("/" in name and "kubernetes.io/" not in name)


def _nanos(amount: Any) -> int | None:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return None
    try:
        return nanos(amount)
    except InvalidQuantity:
        return None


def _images(containers: list[tuple[Path, dict[str, Any]]]) -> Iterator[Fault]:
    for path, container in containers:
        if not container.get("image"):
            yield Fault((*path, "image"), "is required")
