"""All warnings about a set of policies, or about some of them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from webhook.judgement.together import contradicting
from webhook.judgement.together.everywhere import rejecting
from webhook.judgement.together.overlapping import overlapping, required
from webhook.judgement.together.policy_view import Effort, Policy, policy, unfinished
from webhook.judgement.together.shadowed import Shadows
from webhook.policy.model import PlacementPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from webhook.placement.capacity import CapacityClass
    from webhook.policy.findings import Finding
    from webhook.policy.policy_documents import Document

# Pairs that are checked, for a whole set and while a client waits; each takes some 50 µs.
MOST_PAIRS: Final = 20_000
MOST_WRITTEN: Final = 1_000
# Steps of the search for policies that reject whole sets of pods. Each takes some 5 µs.
MOST_LOOKS: Final = 50_000
MOST_LOOKS_OF_ALL: Final = 250_000
# Steps of the search for three or more that overlap: for one policy, for several while a client
# waits, and for a whole set. Each takes some 5 µs.
MOST_STEPS: Final = 500
MOST_STEPS_WRITTEN: Final = 2_000
MOST_STEPS_OF_ALL: Final = 40_000


class Memory:
    """A cache of prepared policies: a write changes one of a thousand."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Document, list[CapacityClass], Policy]] = {}

    def policies(
        self, documents: Sequence[Document], classes: Mapping[str, CapacityClass]
    ) -> list[Policy]:
        """Return the policies of the documents in their order, without those of unknown classes."""
        known, found = self._known, {}
        for document in documents:
            model = document.model
            if not isinstance(model, PlacementPolicy):
                continue
            wanted = classes_of(model)
            named = [classes[name] for name in wanted if name in classes]
            if len(named) < len(wanted):
                continue
            before = known.get(model.name)
            if before and before[0] is document and before[1] == named:
                found[model.name] = before
            else:
                found[model.name] = (document, named, policy(document, model, classes))
        self._known = found
        return sorted((each for _, _, each in found.values()), key=lambda each: each.order)


def classes_of(model: PlacementPolicy) -> list[str]:
    """Return the names of the classes in a policy's capacity settings, in order."""
    return list(dict.fromkeys(setting.class_name for _, setting in model.capacity_settings()))


def warnings(policies: Sequence[Policy]) -> list[Finding]:
    """Return all findings about the policies, given in their order."""
    return _findings(policies, policies, MOST_PAIRS)


def faults(policies: Sequence[Policy]) -> list[Finding]:
    """Only the errors with which a stored set still serves."""
    found = [each for policy in policies for each in contradicting.alone(policy)]
    sound = [each for each in policies if not each.contradictory]
    effort = Effort(MOST_LOOKS_OF_ALL)
    found += [each.finding() for each in rejecting(sound, frozenset(policies), effort)]
    return sorted(each for each in found if each.is_fault)


def of_policy(policies: Sequence[Policy], name: str) -> list[Finding]:
    """Return findings about one of the policies, and about others because of it."""
    chosen = [each for each in policies if each.name == name]
    return _findings(policies, chosen, MOST_WRITTEN, others=True)


def of_classes(policies: Sequence[Policy], classes: AbstractSet[str]) -> list[Finding]:
    """Return findings about policies that name one of the classes, and may depend on it."""
    chosen = [each for each in policies if not classes.isdisjoint(classes_of(each.model))]
    pairs = contradicting.Pairs(policies, MOST_WRITTEN)
    found = {found for each in chosen for found in contradicting.alone(each)}
    reported, groups = _groups(policies, chosen, MOST_STEPS_WRITTEN)
    return sorted(found.union(groups, pairs.findings(chosen, level=False, reported=reported)))


def _findings(
    policies: Sequence[Policy], chosen: Sequence[Policy], most: int, *, others: bool = False
) -> list[Finding]:
    shadows, pairs = Shadows(policies), contradicting.Pairs(policies, most)
    found = {
        found for each in chosen for found in (*contradicting.alone(each), *shadows.over(each))
    }
    if others:
        found.update(found for each in chosen for found in shadows.under(each))
    # A setting that reaches no pod has no further findings.
    dead = {(each.file, each.path) for each in found}
    reported, groups = _groups(policies, chosen, MOST_STEPS if others else MOST_STEPS_OF_ALL)
    beside = pairs.findings(chosen, reported=reported)
    found.update(each for each in beside if (each.file, each.path) not in dead)
    return sorted(found.union(groups))


def _groups(
    policies: Sequence[Policy], chosen: Sequence[Policy], steps: int
) -> tuple[set[frozenset[Policy]], list[Finding]]:
    """Return groups of policies that reject all pods of a set; findings about them, and about
    overlaps.

    A policy that contradicts itself is left out: it rejects all of its pods without any other.
    """
    sound = [each for each in policies if not each.contradictory]
    some = frozenset(chosen)
    effort = Effort(MOST_LOOKS if len(some) < len(policies) else MOST_LOOKS_OF_ALL)
    everywhere = list(rejecting(sound, some, effort))
    reported = {each.policies for each in everywhere}
    reported |= {frozenset(two) for each in everywhere for two in combinations(each.policies, 2)}
    overlaps = overlapping(list(required(sound)), some, MOST_STEPS, steps)
    found = [each.finding() for each in everywhere]
    found += [each.finding() for each in overlaps if frozenset(each.policies) not in reported]
    if effort.is_over:
        found.append(unfinished(chosen[-1]))
    return reported, found
