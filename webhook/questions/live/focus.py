"""The part of an explanation that --field and --policy select."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.comparison.difference import fields
from webhook.decision.arrival import DEFAULT_TOLERATION_SECONDS
from webhook.errors import NoSuch
from webhook.evaluation.result import answers, result_of
from webhook.placement import pod as pods
from webhook.placement.capacity_setting import written_by_class
from webhook.placement.fields import BY_NAME, FIELDS, Shape
from webhook.placement.pod import AFFINITY_LISTS, REQUIRED_NODES
from webhook.placement.schema.placement import SETTABLE
from webhook.placement.schema.security import PodSecurityContext
from webhook.placement.tolerations import NO_EXECUTE
from webhook.shortening import first_few
from webhook.strict import guess
from webhook.text.explanation import audit_entries, credited_to, cure, describe_reason
from webhook.text.value_text import both_fields, field_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.decision.decision import Audited
    from webhook.evaluation.replicas import Replicas
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.stamp_text import Stamp
    from webhook.policy.policy_set import PolicySet
    from webhook.questions.live.live_pods import Difference, LivePod
    from webhook.questions.live.missing_stamp import Why
    from webhook.text.explanation import Row

# What the DefaultTolerationSeconds admission plugin gives every pod.
_NOBODYS: Final = {
    f"tolerations[{key}]": [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": seconds}
    ]
    for key, seconds in DEFAULT_TOLERATION_SECONDS.items()
}
_KEYED: Final = frozenset(field.name for field in FIELDS if field.keyed_by)
# Prefixes of a path: of JSONPath, in a template, and in a pod.
_PREFIXES: Final = (".", "spec.template.", "spec.", "metadata.")
# How many policies of a set a message lists.
_LISTED: Final = 5
# The common suffix of the names of a pod's affinities.
_ENDING: Final = "DuringSchedulingIgnoredDuringExecution"
_AFFINITY: Final = (REQUIRED_NODES, *AFFINITY_LISTS)
_CAPACITY: Final = re.compile(r"capacity\[(.*)\]")


def field_path(text: str) -> str:
    """Return a path as stamps and traces write it: `spec.nodeSelector.pool` is
    nodeSelector[pool]."""
    path = text.strip().replace(_ENDING, "")
    for prefix in _PREFIXES:
        path = path.removeprefix(prefix)
    holder, dot, key = path.partition(".")
    return f"{holder}[{key}]" if dot and key and holder in _KEYED else path


def unknown_field(path: str) -> str:
    """Return why no policy can set the field at the path, with the cure; empty if one can."""
    word, key = re.split(r"[.\[]", path, maxsplit=1)[0], path.partition("[")[2].removesuffix("]")
    if word not in SETTABLE:
        return f"no policy can set it{guess(word, SETTABLE) or _listed(SETTABLE)}"
    if path == word:
        return ""
    if word == "affinity":
        fits = any(is_within(affinity_field, path) for affinity_field in _AFFINITY)
        return "" if fits else f"unknown affinity field{_listed(_AFFINITY)}"
    if word not in _KEYED:
        return f"{word} has no parts: give --field {word}"
    named = f"{word}[{BY_NAME[word].keyed_by}]"
    if not (path.startswith(f"{word}[") and path.endswith("]") and key):
        return f"name a part of it as in {named}"
    if BY_NAME[word].shape is Shape.LIST and key.isdigit():
        return f"name an entry by its key, as in {named}, not by its position"
    members = PodSecurityContext.outer_names()
    if word == "securityContext" and key not in members:
        return f"no policy can set it{guess(key, members) or _listed(members)}"
    return ""


def _listed(names: Sequence[str]) -> str:
    return f"; it is one of {', '.join(names)}"


def is_within(field: str, path: str) -> bool:
    """Return whether a field is the one at the path, or one below it."""
    return field == path or field.startswith((f"{path}[", f"{path}."))


def touched(field: str, path: str, policies: PolicySet) -> bool:
    """Return whether a policy that sets `field` sets what is at the path.

    A capacity class sets the tolerations of its taints, and node affinity.
    """
    if is_within(field, path):
        return True
    match = _CAPACITY.fullmatch(field)
    capacity_class = policies.classes.get(match[1]) if match else None
    return capacity_class is not None and any(
        is_within(toleration, path) for toleration in written_by_class(capacity_class)
    )


def concerns_path(setting: PlacementSetting, path: str) -> bool:
    """Return whether a policy's setting sets what is at the path."""
    return any(is_within(write, path) for write in setting.writes)


class NoSuchPolicy(NoSuch):
    """No such policy: `problem`, and the `policy_names` that are similar."""

    def __init__(self, problem: str, name: str, policy_names: Iterable[str]) -> None:
        names = list(policy_names)
        near = difflib.get_close_matches(name, names, 3)
        listing = f"the set has {first_few(names, _LISTED)}" if names else "the set has no policies"
        hint = f"did you mean {' or '.join(near)}?" if near else listing
        super().__init__(f"{problem}; {hint}")


class Focus(NamedTuple):
    """The policy and the field to explain; empty: all.

    `every`: where all are explained, also each policy that does not match.
    """

    policy: str = ""
    field: str = ""
    every: bool = False

    def __bool__(self) -> bool:
        return bool(self.policy or self.field)

    @property
    def title(self) -> str:
        policy = f"policy {self.policy}" if self.policy else ""
        return ", ".join(filter(None, (policy, self.field)))

    def selects(self, policy: str, field: str, policies: PolicySet) -> bool:
        """Return whether a policy's setting of a field is about it."""
        is_touched = not self.field or touched(field, self.field, policies)
        return is_touched and self.policy in ("", policy)

    def difference(self, difference: Difference) -> bool:
        who = (*difference.then, *difference.now)
        named = not self.policy or self.policy in who
        return named and (not self.field or is_within(difference.field, self.field))

    def has_say(self, policy: str, policies: PolicySet) -> bool:
        """Return whether it is the selected policy, or sets the selected field."""
        if self.policy:
            return policy == self.policy
        settings = [
            setting
            for candidate in policies.policies
            if candidate.name == policy
            for setting in candidate.settings
        ]
        return any(concerns_path(setting, self.field) for setting in settings)

    def document(self, replicas: Replicas, policies: PolicySet) -> dict[str, Any]:
        """Return the result of a decision as JSON; its lists have what is selected."""
        result = result_of(replicas)
        if self:
            kept = [answer for answer in result.policies if self.has_say(answer.name, policies)]
            trace = [e for e in result.trace if self.selects(e.policy, e.field, policies)]
            result = result.model_copy(update={"policies": kept, "trace": trace})
        return result.document()


def check_policy(focus: Focus, policies: PolicySet, stamped: Sequence[str]) -> None:
    policy_names = [policy.name for policy in policies.policies]
    if not focus.policy or focus.policy in (*policy_names, *stamped):
        return
    problem = f"--policy {focus.policy}: no such policy is in force"
    raise NoSuchPolicy(problem, focus.policy, policy_names)


def of_pod(
    live: LivePod, policies: PolicySet, focus: Focus, unstamped: Why | None
) -> Iterator[Row]:
    """Yield the field of a live pod, its stamp, and what today's policies would do."""
    yield from _field_rows(live, focus)
    yield from _stamp_rows(live, policies, focus, unstamped)
    yield from of_replicas(live.today, policies, focus)
    for difference in filter(focus.difference, live.differences):
        who = ", ".join(difference.now)
        _, would = both_fields(difference.field, difference.has, difference.would)
        yield "would", who, would
        for why in difference.why:
            yield "why", "", why


def of_replicas(replicas: Replicas, policies: PolicySet, focus: Focus) -> Iterator[Row]:
    """Yield what today's policies do to pods, and why policies with a setting do not apply it."""
    if replicas.decision.identity is None:
        yield "no", focus.policy, "the pod is not part of a run: no policy applies"
        yield "cure", "", cure(replicas.template)
        return
    if replicas.decision.result == "not-sent":
        yield "no", focus.policy, replicas.decision.reason
        return
    if not replicas.decision.allowed:
        yield "rejected", "", replicas.decision.reason
    decision = replicas.decision
    entries = [e for e in decision.trace if focus.selects(e.policy, e.field, policies)]
    for entry in entries:
        yield entry.outcome, credited_to(entry), f"{entry.field}: {entry.reason}"
    audited = [
        e for e in audit_entries(replicas.evaluation) if focus.selects(e.policy, e.field, policies)
    ]
    for entry in audited:
        text = f"if enforced, {entry.outcome}: {entry.field}: {describe_reason(entry, policies)}"
        yield "audit", credited_to(entry), text
    yield from _judged(replicas.evaluation.audited, policies, focus)
    spoken = {entry.policy for entry in (*entries, *audited)}
    silent = 0
    for answer in answers(replicas.evaluation):
        silenced = answer.answer != "audit" and answer.name in spoken
        if focus.has_say(answer.name, policies) and not silenced:
            silent += 1
            yield answer.answer, answer.name, answer.why
    if not entries and not audited and not silent and focus.field and not focus.policy:
        yield "no", "", f"no policy in the set sets {focus.field}"


def _judged(audited: Audited | None, policies: PolicySet, focus: Focus) -> Iterator[Row]:
    """Yield why policies under Audit would reject the pods, and that some are not judged."""
    for policy, effect in audited.alone.items() if audited else ():
        if focus.has_say(policy, policies):
            for rejection in effect.rejections:
                yield "audit", policy, f"if enforced, rejected: {rejection}"
            if effect.unknown:
                yield "unknown", policy, f"not judged: {effect.unknown}"


def credited(stamp: Stamp, policy: str) -> list[str]:
    """Return the fields with which the stamp credits a policy, and what it took, as texts."""
    removed = stamp.removed.get(policy)
    texts = [*stamp.policies[policy], *([_taken(removed)] if removed else [])]
    return texts or ["matched, but set no field"]


def _taken(texts: Sequence[str]) -> str:
    return f"took away tolerations {', '.join(texts)}"


def _field_rows(live: LivePod, focus: Focus) -> Iterator[Row]:
    if not focus.field:
        return
    value_by_field = fields(pods.parse_pod(live.pod.value))
    within = [field for field in value_by_field if is_within(field, focus.field)]
    shown_fields = [f for f in within if f == focus.field or value_by_field[f] != _NOBODYS.get(f)]
    texts = {
        difference.field: both_fields(difference.field, difference.has, difference.would)[0]
        for difference in live.differences
    }
    for field in shown_fields:
        yield "has", "", texts.get(field) or field_text(field, value_by_field[field])
    if not shown_fields:
        what = "nothing but the API server's defaults" if within else "nothing"
        yield "has", "", f"{focus.field}: {what}"


def _stamp_rows(
    live: LivePod, policies: PolicySet, focus: Focus, unstamped: Why | None
) -> Iterator[Row]:
    if live.stamp is None:
        yield "stamp", "", f"none: {unstamped.reason}" if unstamped else "none"
        return
    if live.stamp.left_alone:
        yield "stamp", "", f"left alone: {live.stamp.left_alone}"
        return
    rows = [
        (policy, f"{field}: recorded when the pod was created")
        for policy, fields in live.stamp.policies.items()
        for field in fields
        if focus.selects(policy, field, policies)
    ]
    rows += [
        (policy, _taken(texts))
        for policy, texts in live.stamp.removed.items()
        if focus.selects(policy, "tolerations.allowed", policies)
    ]
    rows += [
        (policy, f"set aside by the exception {name}")
        for name, gone in live.stamp.exceptions.items()
        for policy in gone
        if focus.has_say(policy, policies)
    ]
    yield from (("stamp", *row) for row in rows)
    if rows:
        return
    if focus.policy in live.stamp.policies:
        yield "stamp", focus.policy, "it matched, but set no field"
    elif focus.policy:
        yield "stamp", focus.policy, "it was not applied"
    else:
        yield "stamp", "", "no policy set it"
