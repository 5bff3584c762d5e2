"""Checks between the fields of a Run.

All checks work on raw values, which may have a wrong type: other checks report that.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.dns_names import MAX_LABEL
from webhook.frameworks.framework import Roles
from webhook.frameworks.table import FRAMEWORKS, ROLES
from webhook.placement.schema.syntax import long_lists
from webhook.strict import Problem, UnknownWord, guess, quoted

# Kinds whose pod runs until it is stopped.
SERVING = frozenset({"notebook", "tensorboard", "service"})
DEFAULT_ROLE = "master"

_GOES_WITH_SERVING = "is valid with the kinds notebook, tensorboard and service only; remove it"
_GOES_WITH_FINISHING = "is valid with the kinds experiment, job and build only; remove it"

GANG_IS_NATIVE = "is valid on backend native only, because the engine creates the pods; remove it"


def spec_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems between fields of a Run's spec."""
    framework, kind, replicas = (given.get(name) for name in ("framework", "kind", "replicas"))
    if isinstance(kind, str) and kind in SERVING:
        yield from _serving(kind, replicas)
        if framework is not None:
            yield Problem(("framework",), _GOES_WITH_FINISHING)
    else:
        if framework is None or (isinstance(framework, str) and framework in FRAMEWORKS):
            yield from _wrong_roles(framework, replicas)
        for name in ("ports", "maxAgeSeconds"):
            if given.get(name) is not None:
                yield Problem((name,), _GOES_WITH_SERVING)
    if given.get("gang") is not None and isinstance(kind, str) and kind in SERVING:
        yield Problem(("gang",), _GOES_WITH_FINISHING)
    if given.get("gang") is not None and given.get("backend", "native") != "native":
        yield Problem(("gang",), GANG_IS_NATIVE)
    for name in FRAMEWORKS:
        if given.get(name) is not None and name != framework:
            yield Problem((name,), f"is valid with framework {name} only; remove it")
    count = sum(map(count_of, replicas.values())) if isinstance(replicas, dict) else 1
    for definition in FRAMEWORKS.values():
        if definition.find_problems is not None:
            yield from definition.find_problems(given.get(definition.name), count)


def _serving(kind: str, replicas: object) -> Iterator[Problem]:
    for role, replica in replicas.items() if isinstance(replicas, dict) else ():
        if role != DEFAULT_ROLE or count_of(replica) != 1:
            what = f"a {kind} is one pod, of role {DEFAULT_ROLE}; remove replicas"
            yield Problem(("replicas", str(role)), what)


def _wrong_roles(framework: str | None, replicas: object) -> Iterator[Problem]:
    roles = ROLES[framework]
    subject = f"framework {framework}" if framework else "a run without a framework"
    if replicas is None:
        if DEFAULT_ROLE not in roles.names:
            role_names = ", ".join(roles.names)
            yield Problem(("replicas",), f"is required for {subject}; its roles are {role_names}")
        return
    if not isinstance(replicas, dict):
        return
    for role, replica in replicas.items():
        yield from _wrong_role(str(role), count_of(replica), roles, subject)
    for some in roles.required:
        if not any(role in replicas for role in some):
            yield Problem(("replicas",), f"{subject} needs a {' or a '.join(some)}")
    for newer, older in roles.newer.items():
        if newer in replicas and older in replicas:
            what = f"{newer} and {older} are names of one role; keep one of the two"
            yield Problem(("replicas", newer), what)


def _wrong_role(role: str, count: int, roles: Roles, subject: str) -> Iterator[Problem]:
    if role not in roles.names:
        hint = guess(role, roles.names) or f"; its roles are {', '.join(roles.names)}"
        yield UnknownWord(("replicas", role), f"{subject} has no role {quoted(role)}{hint}")
    elif role in roles.single and count > 1:
        what = f"{subject} has one {role} at most, not {count}"
        yield Problem(("replicas", role, "count"), what)


def index_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each override of a replica that does not exist."""
    count, entries = given.get("count", 1), given.get("byIndex")
    for position, entry in enumerate(entries if isinstance(entries, list) else ()):
        index = entry.get("index") if isinstance(entry, dict) else None
        if isinstance(index, int) and isinstance(count, int) and index >= count:
            yield Problem(
                ("byIndex", position, "index"),
                f"there is no replica {index}: count is {count}, and indexes start at 0",
            )


def environment_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each list of objects in a layer that is too long."""
    for part in ("environment", "resources"):
        yield from long_lists(given.get(part), (part,))


def name_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem if a pod name, `<run>-<role>-<index>`, is not a valid hostname."""
    metadata, spec = given.get("metadata"), given.get("spec")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    if not isinstance(replicas, dict) or not replicas:
        replicas = {DEFAULT_ROLE: None}
    longest = max(len(f"-{role}-{count_of(replicas[role]) - 1}") for role in replicas)
    # Another check reports a name that is too long for any object.
    if isinstance(name, str) and MAX_LABEL - longest < len(name) <= MAX_LABEL:
        yield Problem(
            ("metadata", "name"),
            f"is too long: pods are called <run>-<role>-<index>, in at most {MAX_LABEL} "
            f"characters; with these replicas a name has at most {MAX_LABEL - longest}",
        )


def count_of(replica: object) -> int:
    """Return the number of replicas of a role; 1 if it is missing or invalid."""
    count = replica.get("count") if isinstance(replica, dict) else None
    return count if isinstance(count, int) and count > 0 else 1
