"""Checks of the webhook configuration: that pods of runs are sent, once, and no others."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from webhook import names, suspension
from webhook.installation.doctor.findings import Finding, error, note, warning
from webhook.installation.doctor.passed_by import expressions
from webhook.installation.doctor.seen import Read
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.placement.label_values import satisfiable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webhook.installation.doctor.seen import Seen

    Json = Mapping[str, Any]

_NAME: Final = "kubernetes.io/metadata.name"
# Above this a creation that hangs is what people see, and the API server's own time runs out.
_LONGEST: Final = 10


def interception(seen: Seen) -> Iterator[Finding]:
    """The configuration is there, is in force, and has the fields that are safe."""
    if seen.configuration is None:
        if Read.POD_RULES not in seen.unread:
            yield error(
                "there is no webhook configuration: no pod is sent to Fairlead, and every pod of a "
                "run goes unplaced",
                "fairlead install",
            )
        return
    yield from _disabled(seen)
    for entry in seen.entries:
        yield from _fields(entry)
    unguarded = [
        each["name"]
        for each in seen.entries
        if each.get("failurePolicy") == "Ignore" and not any(map(_guards(each), seen.guards))
    ]
    if unguarded and Read.GUARDS not in seen.unread:
        yield warning(
            f"{', '.join(unguarded)}: failurePolicy is Ignore, and no guard tells of the pods that "
            "it lets through",
            "fairlead install --overlay fail-open-guarded, with the same sources as now; with "
            "kustomize, the guard-stamp component beside each source",
        )


def selectors(seen: Seen) -> Iterator[Finding]:
    """No pod is sent twice, and none of what the cluster itself runs on is sent at all."""
    for one, other in combinations(seen.entries, 2):
        if _both([one, other]):
            yield warning(
                f"a pod can match both {one['name']} and {other['name']}: it is sent twice",
                "fairlead install writes entries that exclude each other",
            )
    for entry in seen.entries:
        for namespace in EXCLUDED_NAMESPACES:
            within = {"key": _NAME, "operator": "In", "values": [namespace]}
            reached = [*expressions(entry.get("namespaceSelector") or {}), within]
            if _satisfiable(reached):
                yield error(
                    f"{entry['name']} takes pods of {namespace} too: what the webhook needs to run "
                    "could wait for the webhook",
                    "fairlead install writes selectors that leave it out",
                )


def _guards(entry: Json) -> Callable[[Json], bool]:
    """Whether a binding of the guard is for the pods of this entry: it has the same selectors."""
    selected = [entry.get(each) or {} for each in ("namespaceSelector", "objectSelector")]

    def same(binding: Json) -> bool:
        resources = (binding.get("spec") or {}).get("matchResources") or {}
        found = [resources.get(each) or {} for each in ("namespaceSelector", "objectSelector")]
        return found in (selected, [{}, {}])

    return same


def _disabled(seen: Seen) -> Iterator[Finding]:
    assert seen.configuration is not None  # noqa: S101  (the one caller has looked)
    found = suspension.read(seen.configuration)
    if found is None:
        silent = [each["name"] for each in seen.entries if not each.get("rules")]
        if silent:
            has = "has" if len(silent) == 1 else "have"
            told = f"{', '.join(silent)} {has} no rules, and nothing says until when"
            yield error(f"{told}: no pod is sent", "fairlead enable")
        return
    for problem in found.problems:
        yield error(f"the webhook is disabled, and {problem}", "fairlead enable")
    if found.until is None:
        return
    until = found.until.astimezone().strftime("%a %H:%M:%S %Z")
    if found.due(seen.now):
        yield error(
            f"the webhook was to be enabled again at {until}, and is not: does a controller lead?",
            "fairlead enable",
        )
    else:
        yield warning(
            f"the webhook is disabled until {until}: pods of runs are created unplaced",
            "fairlead enable, once what was wrong is mended",
        )


def _fields(entry: Json) -> Iterator[Finding]:
    name = entry["name"]
    if entry.get("timeoutSeconds", 10) > _LONGEST:
        yield warning(
            f"{name} has timeoutSeconds {entry['timeoutSeconds']}: every creation waits so long "
            "for a webhook that does not answer",
            "fairlead install",
        )
    if entry.get("reinvocationPolicy") != "IfNeeded":
        yield warning(
            f"{name} has reinvocationPolicy {entry.get('reinvocationPolicy')}: what other webhooks "
            "change afterwards is not placed",
            "fairlead install",
        )
    for rule in entry.get("rules") or ():
        if rule.get("resources") != ["pods"] or rule.get("operations") != ["CREATE"]:
            yield warning(
                f"{name} asks for more than the creation of pods: {rule.get('operations')} of "
                f"{rule.get('resources')}",
                "fairlead install",
            )
    if entry.get("failurePolicy") == "Ignore":
        yield note(
            f"{name} lets pods through unplaced while no replica answers (failurePolicy: Ignore)"
        )


def _both(entries: list[Json]) -> bool:
    """Whether some pod in some namespace matches all of them."""
    return all(
        _satisfiable([one for entry in entries for one in expressions(entry.get(selector) or {})])
        for selector in ("objectSelector", "namespaceSelector")
    )


def _satisfiable(wanted: list[Any]) -> bool:
    by_key: dict[str, list[Any]] = defaultdict(list)
    for each in wanted:
        by_key[each["key"]].append(each)
    return all(map(satisfiable, by_key.values()))


def marked_namespaces(seen: Seen) -> Iterator[Finding]:
    """Which namespaces are placed as a whole, and which are meant to be, and are not."""
    values = {name: labels.get(names.PLACE) for name, labels in sorted(seen.namespaces.items())}
    whole = [name for name, value in values.items() if value == names.PLACE_ALL]
    if whole:
        yield note(f"every pod is placed in {', '.join(whole)} ({names.PLACE}: all)")
    for name, value in values.items():
        if value not in (None, names.PLACE_ALL):
            yield warning(
                f"namespace {name} has {names.PLACE}: {value}, which means nothing",
                f"kubectl label namespace {name} --overwrite {names.PLACE}={names.PLACE_ALL}, or "
                f"take the label away with {names.PLACE}-",
            )
