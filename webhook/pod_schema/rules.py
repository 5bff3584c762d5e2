"""What the API server refuses in a pod template beyond its fields: names, volumes, resources, env.

Source: pkg/apis/core/validation of Kubernetes 1.36. What has another shape than a pod's is passed
over: webhook.pod_schema.fields names it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from webhook.placement.quantity import InvalidQuantity, nanos
from webhook.placement.schema.syntax import is_dns_label
from webhook.pod_schema import scheduling_rules
from webhook.pod_schema.fields import MOST, Fault
from webhook.strict import guess, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from webhook.pod_schema.fields import Path

_CONTAINERS: Final = ("initContainers", "containers")
_LABEL: Final = "is not a name: want at most 63 of a-z, 0-9 and '-', a letter or digit at both ends"
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_MAX_PORT_NAME: Final = 15
_MAX_PORT: Final = 65535
# Volumes among which the one that is meant is looked for.
_LISTED: Final = 32


def faults(spec: Any, *, volumes: Collection[str] = (), more_volumes: bool = False) -> list[Fault]:
    """What is wrong with a pod's spec, the paths below it; the first 50 faults.

    `volumes`: names of volumes that its controller adds. `more_volumes`: it may add others, so that
    a mount without a volume is a warning; and it may set the image.
    """
    if not isinstance(spec, dict):
        return []
    return list(islice(_faults(spec, volumes, more_volumes=more_volumes), MOST))


def _faults(
    spec: Mapping[str, Any], volumes: Collection[str], *, more_volumes: bool
) -> Iterator[Fault]:
    own = list(_dicts(spec.get("volumes"), ("volumes",)))
    yield from _names(own)
    yield from _sources(own)
    yield from _resources(spec.get("resources"), ("resources",))
    names = (each.get("name") for _, each in own)
    known = frozenset((*(name for name in names if isinstance(name, str)), *volumes))
    containers = [each for key in _CONTAINERS for each in _dicts(spec.get(key), (key,))]
    yield from _names(containers)
    for path, container in containers:
        yield from _resources(container.get("resources"), (*path, "resources"))
        yield from _mounts(container, path, known, more=more_volumes)
        yield from _ports(container, path)
        yield from _variables(container, path)
    yield from scheduling_rules.faults(spec, images=not more_volumes)


def _dicts(value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The mappings of a list, each with its path."""
    for position, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, dict):
            yield (*path, position), each


def _names(items: list[tuple[Path, dict[str, Any]]]) -> Iterator[Fault]:
    """Names of volumes, or of all containers: DNS labels, each once."""
    first: dict[str, Path] = {}
    for path, each in items:
        name = each.get("name")
        if not isinstance(name, str):
            continue
        if not is_dns_label(name):
            yield Fault((*path, "name"), f"{shown(name)} {_LABEL}")
        elif name in first:
            where = f"{first[name][-2]}[{first[name][-1]}]"
            yield Fault((*path, "name"), f"{shown(name)} is that of {where} too; rename one")
        else:
            first[name] = path


def _sources(volumes: list[tuple[Path, dict[str, Any]]]) -> Iterator[Fault]:
    for path, volume in volumes:
        given = [key for key, value in volume.items() if key != "name" and value is not None]
        if len(given) > 1:
            yield Fault((*path, given[1]), f"a volume is one of {', '.join(given)}; keep one")


def _mounts(
    container: Mapping[str, Any], path: Path, known: frozenset[str], *, more: bool
) -> Iterator[Fault]:
    for key, where in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
        first: dict[str, Path] = {}
        for at, mount in _dicts(container.get(key), (*path, key)):
            name, target = mount.get("name"), mount.get(where)
            if isinstance(name, str) and name not in known:
                cure = _volume_meant(name, known)
                text = f"the pod has no volume {shown(name)}{cure}"
                yield Fault((*at, "name"), text, "warning" if more else "error")
            if isinstance(target, str) and first.setdefault(target, at) is not at:
                text = f"{shown(target)} is that of {key}[{first[target][-1]}] too; keep one"
                yield Fault((*at, where), text)


def _volume_meant(name: str, known: frozenset[str]) -> str:
    if not known:
        return "; it has none"
    if len(known) > _LISTED:
        return f"; it has {len(known)} others"
    return guess(name, tuple(known)) or f"; the volumes are {', '.join(sorted(known))}"


def _resources(resources: Any, path: Path) -> Iterator[Fault]:
    sides = {}
    for side in ("requests", "limits"):
        amounts = resources.get(side) if isinstance(resources, dict) else None
        sides[side] = amounts if isinstance(amounts, dict) else {}
        for name, amount in sides[side].items():
            if (_nanos(amount) or 0) < 0:
                yield Fault((*path, side, name), f"{amount} is less than nothing")
    limits = sides["limits"]
    for name, amount in sides["requests"].items():
        asked, most = _nanos(amount), _nanos(limits.get(name))
        here = (*path, "requests", name)
        if asked is None or (most is None and name in limits and limits[name] is not None):
            continue
        if most is None:
            if _is_whole(name):
                yield Fault(here, f"{name} needs a limit as high: add limits.{name}: {amount}")
        elif asked > most:
            yield Fault(here, f"{amount} is above its limit, {limits[name]}; raise limits.{name}")
        elif asked < most and _is_whole(name):
            text = f"{amount} is not its limit, {limits[name]}; of {name} both are the same"
            yield Fault(here, text)


def _is_whole(name: str) -> bool:
    """Whether a resource cannot be overcommitted: huge pages, and devices of other domains."""
    return name.startswith("hugepages-") or ("/" in name and "kubernetes.io/" not in name)


def _nanos(amount: Any) -> int | None:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float):
        return None
    try:
        return nanos(amount)
    except InvalidQuantity:
        return None


def _ports(container: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    first: dict[str, Path] = {}
    for at, port in _dicts(container.get("ports"), (*path, "ports")):
        for key, least in (("containerPort", 1), ("hostPort", 0)):
            number = port.get(key)
            # A hostPort of 0 is none.
            if isinstance(number, int) and not least <= number <= _MAX_PORT:
                yield Fault((*at, key), f"{number} is not a port: want 1 to {_MAX_PORT}")
        name = port.get("name")
        if not isinstance(name, str) or not name:
            continue
        if len(name) > _MAX_PORT_NAME or not _PORT_NAME.fullmatch(name):
            text = f"{shown(name)} is not a port's name: want at most 15 of a-z, 0-9 and single '-'"
            yield Fault((*at, "name"), text)
        elif first.setdefault(name, at) is not at:
            text = f"{shown(name)} is that of ports[{first[name][-1]}] too; rename one"
            yield Fault((*at, "name"), text)


def _variables(container: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    for at, variable in _dicts(container.get("env"), (*path, "env")):
        if variable.get("value") and variable.get("valueFrom"):
            yield Fault((*at, "valueFrom"), "there is a value already; keep one of the two")
