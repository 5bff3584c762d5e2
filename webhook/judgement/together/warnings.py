"""All findings about policies beside each other, of a whole set or of some of them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.judgement.together import alone
from webhook.judgement.together.everywhere import rejecting
from webhook.judgement.together.policy_view import Effort, Policy, policy, unfinished
from webhook.judgement.together.shadowed import Shadows
from webhook.judgement.together.trial import Trial
from webhook.policy.compile import shares_apart
from webhook.policy.findings import Kind
from webhook.policy.model import PlacementPolicy
from webhook.policy.policy_set import Compiler, PolicySet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.findings import Finding
    from webhook.policy.policy_documents import Document

# Steps of the proofs and of the trials, for a whole set and while a client waits. Each takes some
# 5 µs.
MOST_LOOKS: Final = 50_000
MOST_LOOKS_OF_ALL: Final = 250_000
MOST_TRIED: Final = 40_000
MOST_TRIED_OF_ALL: Final = 400_000
# What depends on the nodes.
_OF_NODES: Final = frozenset({Kind.NO_NODE, Kind.NOT_CHECKED})


class Prepared(NamedTuple):
    """Policies in their order, prepared for checks against each other, and the set of them.

    `runtime_classes` are the cluster's by name, as far as they are known.
    """

    policies: Sequence[Policy]
    whole: PolicySet
    runtime_classes: Mapping[str, JsonObject]


class Memory:
    """A cache of prepared policies: a write changes one of a thousand."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Document, list[CapacityClass], Policy]] = {}
        self._compiler = Compiler()

    def prepare(
        self,
        documents: Sequence[Document],
        classes: Mapping[str, CapacityClass],
        runtime_classes: Mapping[str, JsonObject],
    ) -> Prepared:
        """Return the policies of the documents, without those of unknown classes."""
        known, found = self._known, {}
        for document in documents:
            model = document.model
            if not isinstance(model, PlacementPolicy):
                continue
            wanted = classes_of(model)
            named = [classes[name] for name in wanted if name in classes]
            if len(named) < len(wanted):
                continue
            for each in shares_apart(model):
                before = known.get(each.name)
                if before and before[0] is document and before[1] == named:
                    found[each.name] = before
                else:
                    found[each.name] = (document, named, policy(document, each, classes))
        self._known = found
        ready = sorted((each for _, _, each in found.values()), key=lambda each: each.order)
        models = [each.model for each in ready]
        whole = PolicySet(models, classes, "", compiler=self._compiler)
        return Prepared(ready, whole, runtime_classes)


def classes_of(model: PlacementPolicy) -> list[str]:
    """Return the names of the classes in a policy's capacity settings, in order."""
    return list(dict.fromkeys(name for _, name in model.class_names()))


def warnings(given: Prepared, nodes: Sequence[Node] | None) -> list[Finding]:
    """Return all findings about the policies; `nodes` is None if they are unknown."""
    return _findings(given, given.policies, nodes)


def faults(given: Prepared) -> list[Finding]:
    """Return only the errors with which a stored set still serves."""
    found = [each for policy in given.policies for each in alone.findings(policy)]
    groups = rejecting(given, frozenset(given.policies), Effort(MOST_LOOKS_OF_ALL))
    found += [each.finding() for each in groups]
    return sorted(each for each in found if each.is_fault)


def of_policy(given: Prepared, name: str, nodes: Sequence[Node] | None) -> list[Finding]:
    """Return findings about one of the policies, and about others because of it."""
    chosen = [each for each in given.policies if each.document.model.name == name]
    return _findings(given, chosen, nodes, others=True)


def of_classes(given: Prepared, classes: AbstractSet[str]) -> list[Finding]:
    """Return findings about policies that name one of the classes, and may depend on it."""
    chosen = [each for each in given.policies if not classes.isdisjoint(classes_of(each.model))]
    return _findings(given, chosen, None, others=True) if chosen else []


def of_nodes(given: Prepared, nodes: Sequence[Node]) -> Iterator[Finding]:
    """Yield what depends on the nodes of the findings about all policies."""
    trial = Trial(given, nodes, Effort(MOST_TRIED_OF_ALL))
    return (each for each in trial.findings(given.policies) if each.kind in _OF_NODES)


def _findings(
    given: Prepared,
    chosen: Sequence[Policy],
    nodes: Sequence[Node] | None,
    *,
    others: bool = False,
) -> list[Finding]:
    policies = given.policies
    shadows = Shadows(policies)
    pairs = [(each, found) for each in chosen for found in alone.findings(each)]
    pairs += [pair for each in chosen for pair in shadows.over(each)]
    if others:
        pairs += [pair for each in chosen for pair in shadows.under(each)]
    found = _of_all_shares(policies, pairs)
    # A setting that reaches no pod has no further findings.
    dead = {(each.file, each.path) for each in found if each.kind is not Kind.WEAKENS}
    reported, everywhere = _rejected(given, chosen)
    effort = Effort(MOST_TRIED if others else MOST_TRIED_OF_ALL)
    tried = Trial(given, nodes, effort).findings(chosen, reported=reported)
    refused = {each.file for each in found if each.kind is Kind.REFUSED_PODS}
    found.update(
        each
        for each in tried
        if (each.file, each.path) not in dead
        and not (each.kind is Kind.REFUSED_PODS and each.file in refused)
    )
    return sorted(found.union(everywhere))


def _of_all_shares(
    policies: Sequence[Policy], pairs: Iterable[tuple[Policy, Finding]]
) -> set[Finding]:
    """Return the findings, each of which comes after its policy, without those that do not hold
    for all shares of a split, and are not about the split."""
    shares = Counter(id(each.document) for each in policies)
    held: dict[tuple[object, ...], set[Policy]] = {}
    for of, each in pairs:
        held.setdefault((id(of.document), each.path, each.kind), set()).add(of)
    return {
        each
        for of, each in pairs
        if ".split" in each.path
        or len(held[id(of.document), each.path, each.kind]) == shares[id(of.document)]
    }


def _rejected(
    given: Prepared, chosen: Sequence[Policy]
) -> tuple[set[frozenset[Policy]], list[Finding]]:
    """Return groups of policies that reject all pods of a set, and the findings about them."""
    some = frozenset(chosen)
    effort = Effort(MOST_LOOKS if len(some) < len(given.policies) else MOST_LOOKS_OF_ALL)
    everywhere = list(rejecting(given, some, effort))
    reported = {each.policies for each in everywhere}
    reported |= {frozenset(two) for each in everywhere for two in combinations(each.policies, 2)}
    found = [each.finding() for each in everywhere]
    if effort.is_over:
        found.append(unfinished(chosen[-1]))
    return reported, found
