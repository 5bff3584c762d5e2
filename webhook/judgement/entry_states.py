"""Whether each entry and guard that an installation has recorded is in force, and why not.

The controller and `fairlead doctor` both ask this, so that they give one answer. A configuration is
as the API server returns it, and None if it does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names, validating
from webhook.evaluation.sending import takes_new_pods
from webhook.interception import (
    MUTATING,
    PATH,
    VALIDATING,
    expected_entries,
    leads_to,
)
from webhook.placement.label_values import expressions, holds, negated
from webhook.shortening import first_few
from webhook.suspension import parse_suspension

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.interception import Record
    from webhook.sources.table import SourceTable

    Json = Mapping[str, Any]

# Reasons for which an entry or a guard is not in force; guards have more.
ABSENT: Final = "Absent"
DISABLED: Final = "Disabled"
NO_RULES: Final = "NoRules"
ELSEWHERE: Final = "Elsewhere"
NARROWED: Final = "Narrowed"
NOT_TRUSTED: Final = "NotTrusted"
FAILS_OPEN: Final = "FailsOpen"
NOT_READ: Final = "NotRead"
NO_SOURCE: Final = "NoSource"

# The operators of an expression that an object with a mark meets.
_PRESENT: Final = ("Exists", "In")
_SELECTORS: Final = ("objectSelector", "namespaceSelector")
# What AKS' admissions enforcer adds to the namespaceSelector of every webhook (decision 101).
_BY_AKS: Final = (
    ("control-plane", "DoesNotExist", frozenset[str]()),
    ("control-plane", "NotIn", frozenset({"true"})),
    ("kubernetes.azure.com/managedby", "NotIn", frozenset({"aks"})),
)
_MOST_NAMED: Final = 3


class Narrowing(NamedTuple):
    """One condition that a live entry has in addition to what is to be installed.

    what: the condition, and that other pods are not sent
    meant: an admin or a known system leaves out these namespaces, and no other pod is concerned
    conditions: it is about matchConditions
    only: the only namespaces whose pods are sent, if it names them
    selector, expression: the condition, unless it is about matchConditions
    """

    what: str
    meant: bool = False
    conditions: bool = False
    only: str = ""
    selector: str = ""
    expression: Any = None


class EntryState(NamedTuple):
    """Whether one entry of a configuration, or one guard, is in force.

    reason: one of the reasons above; empty if it is in force
    wanted, found: of an entry for pods, its selectors as they ship, and as they are; None if they
        are not known, or if it sends no pods
    """

    entry: str
    kind: str
    reason: str = ""
    message: str = ""
    narrowings: tuple[Narrowing, ...] = ()
    wanted: Json | None = None
    stored: Json | None = None


def unread(
    some: Iterable[str], kind: str, why: str, expected: Sequence[Json] = ()
) -> list[EntryState]:
    """Return the states of entries and guards about which nothing could be read.

    expected: those for pods, as they ship
    """
    wanted = {entry["name"]: _selectors(entry) for entry in expected}
    return [
        EntryState(name, kind, NOT_READ, f"not known: {why}", wanted=wanted.get(name))
        for name in some
    ]


def _selectors(entry: Json) -> Json:
    return {name: entry.get(name) or {} for name in _SELECTORS}


def untrusted_entries(
    published: Mapping[str, bytes], verifies: Callable[[bytes], bool] | None
) -> dict[str, str]:
    """Return why the API server does not trust the webhook, by the names of such entries.

    published: the caBundle (PEM) of each entry
    verifies: whether a bundle verifies the webhook's certificate; None: that is not known
    """
    reason_by_entry = {}
    for name, bundle in published.items():
        if not bundle:
            reason_by_entry[name] = "it has no caBundle: the API server cannot verify the webhook"
        elif verifies and not verifies(bundle):
            reason_by_entry[name] = "its caBundle does not verify the webhook's certificate"
    return reason_by_entry


def pod_entries(
    record: Record,
    configuration: Json | None,
    table: SourceTable,
    whole: Mapping[str, Mapping[str, str]],
    untrusted: Mapping[str, str],
) -> list[EntryState]:
    """Return the states of the entries that pods are sent by.

    whole: the namespaces that are placed as a whole, with their labels
    untrusted: why the API server does not trust the webhook, by the entry's name
    """
    live = _by_name(configuration)
    expected = {entry["name"]: entry for entry in expected_entries(record, live, table)}
    judge = _Judge(record, untrusted)
    # The source of a name beside these is in no table: its selectors are those of the live entry.
    others = [name for name in record.of_kind(MUTATING) if name not in expected]
    sent_there = [
        negated(expression)
        for name in others
        for expression in expressions((live.get(name) or {}).get("objectSelector") or {})
        if expression["operator"] in _PRESENT
    ]
    entry_by_name = {name: _without_others(entry, sent_there) for name, entry in expected.items()}
    return [
        _pod_entry(name, live.get(name), entry_by_name.get(name), configuration, whole, judge)
        for name in (*expected, *others)
    ]


def _without_others(entry: Json, expressions_more: Sequence[Any]) -> Json:
    """Return the entry without the pods that other entries send."""
    entry_expressions = expressions(entry.get("objectSelector") or {})
    return {
        **entry,
        "objectSelector": {"matchExpressions": [*entry_expressions, *expressions_more]},
    }


class _Judge(NamedTuple):
    """What both kinds of entries are judged by."""

    record: Record
    untrusted: Mapping[str, str]

    def reason(
        self, entry: Json, wanted: Json | None, narrowed: Sequence[Narrowing]
    ) -> tuple[str, str]:
        """Return why an entry with rules is not in force, and in words; else two empty texts."""
        if problem := self._elsewhere(entry, wanted):
            return ELSEWHERE, problem
        if unwanted := [narrowing.what for narrowing in narrowed if not narrowing.meant]:
            return NARROWED, "; ".join(unwanted)
        if entry["name"] in self.untrusted:
            return NOT_TRUSTED, self.untrusted[entry["name"]]
        if wanted and (wanted["failurePolicy"], entry.get("failurePolicy")) == ("Fail", "Ignore"):
            return FAILS_OPEN, (
                "its failurePolicy is Ignore, and Fail was installed: while no replica answers, "
                "what it is asked about is admitted"
            )
        return "", ""

    def _elsewhere(self, entry: Json, wanted: Json | None) -> str:
        client = entry.get("clientConfig") or {}
        if client.get("url") and not self.record.names:
            return ""  # of a webhook outside the cluster, without an installation
        if wanted is None:
            ours = leads_to(entry, names.NAMESPACE, names.WEBHOOK)
            ours = ours or bool(client.get("url") and client["url"] == self.record.url)
            return "" if ours else f"it calls {_target(client)}, which is not Fairlead's"
        target, installed = _target(client), _target(wanted["clientConfig"])
        return "" if target == installed else f"it calls {target}, and {installed} was installed"


def _target(client: Json) -> str:
    to = client.get("service") or {}
    path = str(to.get("path") or "/")
    service = f"{to.get('namespace')}/{to.get('name')}:{to.get('port', 443)}{path}"
    return str(client.get("url") or f"the Service {service}")


def _pod_entry(
    name: str,
    entry: Json | None,
    wanted: Json | None,
    configuration: Json | None,
    whole: Mapping[str, Mapping[str, str]],
    judge: _Judge,
) -> EntryState:
    reason, message = "", ""
    narrowed = tuple(narrowings(entry, wanted, whole)) if entry and wanted else ()
    if entry is None or configuration is None:
        reason, message = ABSENT, _absent("MutatingWebhookConfiguration", name, configuration)
    elif not takes_new_pods(entry):
        reason, message = _describe_disabled(configuration)
    else:
        reason, message = judge.reason(entry, wanted, narrowed)
        # Of policies that are files, the controller knows no source.
        if not reason and wanted is None and validating.POLICIES in judge.record.names:
            reason = NO_SOURCE
            message = (
                "there is no RunSource of this name: the webhook does not know the pods that the "
                "entry sends, and places none of them"
            )
    sends = entry is not None and reason in ("", NARROWED, FAILS_OPEN)
    if reason == NO_SOURCE:
        wanted = entry
    return EntryState(
        name,
        MUTATING,
        reason,
        message,
        narrowed,
        _selectors(wanted) if wanted else None,
        _selectors(entry) if entry and sends else None,
    )


def _by_name(configuration: Json | None) -> dict[str, Json]:
    return {entry["name"]: entry for entry in (configuration or {}).get("webhooks") or ()}


def _absent(kind: str, name: str, configuration: Json | None) -> str:
    what = f"the {kind} {names.WEBHOOK_CONFIGURATION}"
    return f"{what} has no entry {name}" if configuration else f"{what} does not exist"


def _describe_disabled(configuration: Json) -> tuple[str, str]:
    suspension = parse_suspension(configuration)
    if suspension is None:
        return NO_RULES, "it has no rule for the creation of pods, and no end is recorded"
    if suspension.until is None:
        return DISABLED, f"disabled, and {'; '.join(suspension.problems)}"
    return DISABLED, f"disabled until {suspension.until.isoformat(timespec='seconds')}"


def narrowings(
    entry: Json, wanted: Json, whole: Mapping[str, Mapping[str, str]], objects: str = "pods"
) -> Iterator[Narrowing]:
    """Yield what a live entry, or the selectors of a binding, has in addition to `wanted`.

    `objects`: what it is asked about.
    """
    shipped_conditions = wanted.get("matchConditions") or ()
    more = [
        condition
        for condition in entry.get("matchConditions") or ()
        if condition not in shipped_conditions
    ]
    if more:
        shown = ", ".join(str(condition.get("name")) for condition in more)
        what = (
            f"it has matchConditions ({shown}) that do not ship: {objects} that do not meet them "
            "are not sent"
        )
        yield Narrowing(what, conditions=True)
    for selector in _SELECTORS:
        shipped = [
            _comparable(expression) for expression in expressions(wanted.get(selector) or {})
        ]
        for expression in expressions(entry.get(selector) or {}):
            key, operator, values = _comparable(expression)
            if (key, operator, values) in shipped:
                continue
            shipped_values = [more for *same, more in shipped if same == [key, operator]]
            added = ", ".join(sorted(values.difference(*shipped_values) or values))
            shown = f"{key} {operator} {added}".rstrip()
            what = (
                f"its {selector} has {shown} in addition to what is installed: other {objects} "
                "are not sent"
            )
            by_aks = (key, operator, values) in _BY_AKS
            if by_aks:
                what += " (added by AKS' admissions enforcer)"
            # An admin leaves out single namespaces.
            meant = by_aks or (key == names.NAMESPACE_NAME and operator == "NotIn")
            placed = any(
                not holds(
                    expression, labels.get(key, name if key == names.NAMESPACE_NAME else None)
                )
                for name, labels in whole.items()
            )
            of_namespaces = selector == "namespaceSelector"
            yield Narrowing(
                what,
                meant=meant and of_namespaces and not placed,
                only=",".join(sorted(values))
                if of_namespaces and key == names.NAMESPACE_NAME and operator == "In"
                else "",
                selector=selector,
                expression=expression,
            )


def _comparable(expression: Json) -> tuple[str, str, frozenset[str]]:
    values = frozenset(expression.get("values") or ())
    return expression["key"], expression["operator"], values


def as_meant(
    record: Record,
    configuration: Json | None,
    table: SourceTable,
    whole: Mapping[str, Mapping[str, str]],
) -> list[Json]:
    """Return the expected entries, without the namespaces that the live ones leave out on purpose.

    Their selectors say which pods have to have a stamp, whether or not they are in force.
    """
    live = _by_name(configuration)
    selector = "namespaceSelector"
    meant: list[Json] = []
    for entry in expected_entries(record, live, table):
        more = []
        for expression in expressions((live.get(entry["name"]) or {}).get(selector) or {}):
            alone = {selector: {"matchExpressions": [expression]}}
            if any(narrowing.meant for narrowing in narrowings(alone, entry, whole)):
                more.append(expression)
        entry_expressions = expressions(entry[selector])
        meant.append({**entry, selector: {"matchExpressions": [*entry_expressions, *more]}})
    # Of an entry whose source is gone, as it is.
    entry_names = {entry["name"] for entry in meant}
    return [
        *meant,
        *(
            live[name]
            for name in record.of_kind(MUTATING)
            if name in live and name not in entry_names
        ),
    ]


def validating_entries(
    record: Record,
    configuration: Json | None,
    table: SourceTable,
    untrusted: Mapping[str, str],
) -> list[EntryState]:
    """Return the states of the recorded entries that validate writes of policies, and workloads."""
    live = _by_name(configuration)
    entries = validating.webhooks(
        url=record.url.removesuffix(PATH).rstrip("/"),
        only_namespaces=record.only_namespaces,
        namespace_labels=record.namespace_labels,
        table=table,
    )
    expected = {entry["name"]: entry for entry in entries}
    judge = _Judge(record, untrusted)
    states = []
    for name in record.of_kind(VALIDATING):
        entry, reason, message = live.get(name), "", ""
        if entry is None:
            reason = ABSENT
            message = _absent("ValidatingWebhookConfiguration", name, configuration)
        elif not entry.get("rules"):
            reason, message = NO_RULES, "it has no rules"
        elif lacks := sorted(writes(expected.get(name) or {}) - writes(entry)):
            shown = first_few([f"{verb} {resource}" for _, resource, verb in lacks], _MOST_NAMED)
            reason, message = NARROWED, f"its rules lack {shown}"
        else:
            wanted = expected.get(name)
            if name == validating.POLICIES:
                # Policies are in no namespace: the selector of namespaces leaves none of them out.
                entry = {**entry, "namespaceSelector": {}}
            narrowed = tuple(narrowings(entry, wanted, {}, "writes")) if wanted else ()
            reason, message = judge.reason(entry, wanted, narrowed)
        states.append(EntryState(name, VALIDATING, reason, message))
    return states


def writes(entry: Json) -> set[tuple[str, str, str]]:
    """Return the group, resource and operation of each write that an entry asks for."""
    return {
        (group, resource, operation)
        for rule in entry.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for operation in rule["operations"]
    }
