"""Namespaces of which the labels are not known, and what of decisions depends on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.cli.harmless import one_line
from webhook.errors import InvalidPod
from webhook.identity import identify
from webhook.placement import pod as pods
from webhook.placement.kueue import flavor_of
from webhook.policy.findings import first_few

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from webhook.identity import Identity
    from webhook.placement.pod import PodPlacement
    from webhook.policy.conditions import Block
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.template import PodTemplate

_NAMED: Final = 3


def unknown_labels(
    policies: PolicySet,
    used: Iterable[tuple[str, PodTemplate | None]],
    known: Container[str],
    option: str,
) -> list[str]:
    """A line for each namespace whose labels are not known, though decisions depend on them.

    `used` are templates with their namespaces; None stands for pods that say all of themselves.
    `option` says where labels can be given.
    """
    unknown: dict[str, list[PodTemplate]] = {}
    for name, template in used:
        if policies.policies and name not in known:
            unknown.setdefault(name, []).extend([template] if template else [])
    asking = list(_asking(policies))
    found = []
    for name, templates in unknown.items():
        if reasons := [*asking, *_of_pods(policies, templates)]:
            found.append(
                f"the labels of namespace {one_line(name)} are not known, and "
                f"{', and '.join(reasons)}: give its Namespace with {option}"
            )
    return found


def _asking(policies: PolicySet) -> Iterator[str]:
    """Who in the set asks for labels of namespaces."""
    by_word = {
        ("policy", "policies"): [
            each.name
            for each in policies.policies
            if any(_has("namespaceSelector", block) for block in (each.match, *each.exclude))
        ],
        ("exception", "exceptions"): [
            each.name for each in policies.exceptions if _has("namespaceSelector", each.match)
        ],
    }
    for (one, several), asking in by_word.items():
        if asking:
            who, ask = (one, "asks") if len(asking) == 1 else (several, "ask")
            yield f"{who} {', '.join(asking)} {ask} for them"


def _of_pods(policies: PolicySet, templates: Sequence[PodTemplate]) -> Iterator[str]:
    """What the labels could say of pods that do not say it themselves."""
    found = [(each.source.title, own) for each in templates if (own := _placement(each))]
    unmarked = [title for title, own in found if _identity(own, {}) is None]
    if unmarked:
        place = f"{names.PLACE}: {names.PLACE_ALL}"
        yield f"pods of {_few(unmarked)} are part of a run if {place} is one"
    kindless = [title for title, own in found if _identity(own, {}) and not _tells_kind(own)]
    if kindless and _ask_kind(policies):
        yield f"{names.KIND} among them tells the kind of pods of {_few(kindless)}"
    queued = [title for title, own in found if flavor_of(own, (), {})]
    if queued:
        keep = f"{names.KUEUE}: {names.KUEUE_KEEP}"
        yield f"what Kueue chose for pods of {_few(queued)} goes first if {keep} is one"


def _placement(template: PodTemplate) -> PodPlacement | None:
    try:
        return pods.read(template.pod(0))
    except InvalidPod:
        return None  # that is told where it is decided on


def _identity(own: PodPlacement, labels: Mapping[str, str]) -> Identity | None:
    return identify(own.labels, own.annotations, labels)


def _tells_kind(own: PodPlacement) -> bool:
    """Whether the pod is of one kind, whatever its namespace says."""
    one, other = (
        _identity(own, {names.PLACE: names.PLACE_ALL, names.KIND: kind}) for kind in names.KINDS[:2]
    )
    return one == other


def _ask_kind(policies: PolicySet) -> bool:
    of_policies = (block for each in policies.policies for block in (each.match, *each.exclude))
    of_exceptions = (each.match for each in policies.exceptions)
    return any(_has("kinds", block) for block in (*of_policies, *of_exceptions))


def _has(condition: str, block: Block) -> bool:
    return any(each.name == condition for each in block.conditions)


def _few(titles: Iterable[str]) -> str:
    return first_few([one_line(each) for each in titles], _NAMED)
