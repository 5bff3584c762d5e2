"""All findings about policies beside each other, of a whole set or of some of them."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.judgement.together.effort import Effort, unfinished
from webhook.judgement.together.everywhere import demands, rejecting
from webhook.judgement.together.outcomes import OutcomesAlone
from webhook.judgement.together.pod_sets import all_sets
from webhook.judgement.together.policy_view import LIGHT, Policy, policy
from webhook.judgement.together.shadowed import Shadows, changed_groups
from webhook.judgement.together.trial import Trial
from webhook.policy.compile import shares_apart
from webhook.policy.findings import Kind
from webhook.policy.model import PlacementPolicy
from webhook.policy.policy_set import Compiler, PolicySet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from webhook.evaluation.plugins import PluginInputs
    from webhook.judgement.together.everywhere import Demand
    from webhook.judgement.together.pod_sets import PodSet
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.policy.findings import Finding
    from webhook.policy.policy_documents import Document
    from webhook.policy.subject import Subject


class Budget(NamedTuple):
    """Steps of the proofs, and of the trials; `pause` is that of an Effort."""

    proofs: float
    trials: float
    pause: Callable[[], None] = lambda: None

    def for_proofs(self) -> Effort:
        """Return what the proofs may spend."""
        return Effort(self.proofs, self.pause)

    def for_trials(self) -> Effort:
        """Return what the trials may spend."""
        return Effort(self.trials, self.pause)


# The set is judged without the write and with it, and the API server waits five seconds for all
# that a write needs, on a processor that others use as well.
OF_A_WRITE: Final = Budget(25_000, 10_000)
# A whole set, while a page, a replica that loads it or the status of a new policy waits.
AT_ONCE: Final = Budget(250_000, 400_000)
# When nothing waits: some minutes.
IN_TIME: Final = Budget(10_000_000, 20_000_000)
# What is left unchecked would be an answer of `fairlead check`.
UNBOUNDED: Final = Budget(math.inf, math.inf)
# Policies in which a set may differ from the set before, to take over what was made for that.
_FEW_CHANGES: Final = 32
# What depends on the nodes.
_OF_NODES: Final = frozenset({Kind.NO_NODE, Kind.NOT_CHECKED})


class Tables:
    """What checks look up in a set of policies. Each is made once, when it is first used.

    What was made for the set before is taken over, if they differ in a few policies.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        whole: PolicySet,
        nodes: DifferentNodes,
        outcomes: OutcomesAlone,
        before: Tables | None = None,
    ) -> None:
        self._policies = policies
        self._whole = whole
        self._nodes = nodes
        self.outcomes = outcomes
        self.places = dict(zip(policies, range(len(policies)), strict=True))
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: Tables) -> None:
        new = [policy for policy in self._policies if policy not in before.places]
        gone = [policy for policy in before.places if policy not in self.places]
        if len(new) + len(gone) > _FEW_CHANGES:
            return
        made = before.__dict__
        if "match_steps" in made:
            self.match_steps = before.match_steps + _match_steps(new) - _match_steps(gone)
        if "shadows" in made:
            self.shadows = Shadows(new, before.shadows, gone)
        if "by_conflict_key" in made:
            self.by_conflict_key = changed_groups(
                before.by_conflict_key, _conflict_keys_of(new), _conflict_keys_of(gone)
            )

    @cached_property
    def match_steps(self) -> int:
        """The steps of `matching`, beyond those of small policies."""
        return _match_steps(self._policies)

    def matching(self, pod: Subject) -> Sequence[int]:
        """Return the positions of the policies that match, in their order."""
        return self._whole.matching(pod)

    @cached_property
    def shadows(self) -> Shadows:
        """The settings by what they set."""
        return Shadows(self._policies)

    @cached_property
    def demands(self) -> Mapping[str, Demand]:
        """The policies that may reject every pod of a set, by name."""
        return demands(self._policies)

    def pod_sets(self) -> Iterator[PodSet]:
        """Yield the sets of pods that the policies name."""
        return all_sets([policy for policy in self._policies if not policy.contradictory])

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The positions of policies by name."""
        return {policy.name: at for at, policy in enumerate(self._policies)}

    @cached_property
    def by_conflict_key(self) -> dict[str, list[Policy]]:
        """The policies by what others must have in common with them to conflict."""
        return changed_groups({}, _conflict_keys_of(self._policies))

    @cached_property
    def concerning_nodes(self) -> Sequence[Policy]:
        """The policies that limit nodes or tolerate taints."""
        return [policy for policy in self._policies if policy.concerns_nodes]

    @cached_property
    def node_keys(self) -> frozenset[str]:
        """The labels and fields of nodes that a policy or a class reads."""
        return frozenset[str]().union(
            *(policy.node_keys for policy in self._policies),
            *(capacity_class.keys for capacity_class in self._whole.classes.values()),
        )

    def different(self, nodes: Sequence[Node]) -> list[Node]:
        """Return one of all nodes that no policy and no class can tell apart."""
        return self._nodes.among(nodes, self.node_keys)


def _conflict_keys_of(policies: Iterable[Policy]) -> Iterator[tuple[str, Policy]]:
    return ((key, policy) for policy in policies for key in policy.conflict_keys)


def _match_steps(policies: Iterable[Policy]) -> int:
    return 3 * sum([len(policy.match_text) // LIGHT for policy in policies])


class DifferentNodes:
    """The last answer to which nodes differ: most writes find the nodes and keys of the last."""

    def __init__(self) -> None:
        self._known: tuple[Sequence[Node], frozenset[str], list[Node]] | None = None

    def among(self, nodes: Sequence[Node], keys: frozenset[str]) -> list[Node]:
        """Return one of all nodes that differ in none of the keys, nor in taints and resources."""
        last_result = self._known
        if last_result and last_result[0] is nodes and last_result[1] == keys:
            return last_result[2]
        # A field has a slash before its name.
        named = any(key.startswith("/") for key in keys)
        listed = sorted(keys)
        node_by_signature = {
            repr(([node.labels.get(key) for key in listed], named and node.name, *node[2:])): node
            for node in reversed(nodes)
        }
        different = list(node_by_signature.values())
        self._known = (nodes, keys, different)
        return different


class KnownPolicies(NamedTuple):
    """The policies of a document: one for each share of its split; `named` are its classes."""

    document: Document
    name: str
    names: Sequence[str]
    named: Sequence[CapacityClass]
    policies: Sequence[Policy]


class Prepared(NamedTuple):
    """Policies in their order, prepared for checks against each other, and the set of them.

    `by_document` has them by the name of their document, `inputs` the cluster's RuntimeClasses and
    DeviceClasses, as far as they are known.
    """

    policies: Sequence[Policy]
    by_document: Mapping[str, KnownPolicies]
    whole: PolicySet
    inputs: PluginInputs
    tables: Tables


class Memory:
    """A cache of prepared policies: a write changes one of a thousand."""

    def __init__(self) -> None:
        # By the identity of the document: to look at each of a thousand takes longer.
        self._known: dict[int, KnownPolicies] = {}
        self._classes: Mapping[str, CapacityClass] = {}
        self._compiler = Compiler()
        self._nodes = DifferentNodes()
        self._outcomes = OutcomesAlone()
        self._tables: Tables | None = None

    def prepare(
        self,
        documents: Sequence[Document],
        classes: Mapping[str, CapacityClass],
        inputs: PluginInputs,
    ) -> Prepared:
        """Return the policies of the documents, without those of unknown classes."""
        unchanged = self._known if classes == self._classes else {}
        listed = [
            shares or self._policies_of(document, classes)
            for shares, document in zip(
                map(unchanged.get, map(id, documents)), documents, strict=True
            )
        ]
        policies_by_document = {shares.name: shares for shares in listed if shares}
        self._known = {id(shares.document): shares for shares in policies_by_document.values()}
        self._classes = dict(classes)
        policies = [share for shares in policies_by_document.values() for share in shares.policies]
        policies.sort(key=attrgetter("order"))
        whole = PolicySet(
            [policy.model for policy in policies], classes, "", compiler=self._compiler
        )
        tables = Tables(policies, whole, self._nodes, self._outcomes, self._tables)
        self._tables = tables
        return Prepared(policies, policies_by_document, whole, inputs, tables)

    def _policies_of(
        self, document: Document, classes: Mapping[str, CapacityClass]
    ) -> KnownPolicies | None:
        """Return the policies of a document; None if it has none, or an unknown class."""
        model = document.model
        if not isinstance(model, PlacementPolicy):
            return None
        before = self._known.get(id(document))
        wanted = before.names if before else classes_of(model)
        named = [classes[name] for name in wanted if name in classes]
        if len(named) < len(wanted):
            return None
        if before and before.named == named:
            return before
        made = [policy(document, share, classes) for share in shares_apart(model)]
        return KnownPolicies(document, model.metadata.name, wanted, named, made)


def classes_of(model: PlacementPolicy) -> list[str]:
    """Return the names of the classes in a policy's capacity settings, in order."""
    return list(dict.fromkeys(name for _, name in model.class_names()))


def warnings(given: Prepared, nodes: Sequence[Node] | None, budget: Budget) -> list[Finding]:
    """Return all findings about the policies; `nodes` is None if they are unknown."""
    return _findings(given, given.policies, nodes, budget)


def faults(given: Prepared) -> list[Finding]:
    """Return only the errors with which a stored set still serves."""
    findings = [finding for policy in given.policies for finding in policy.findings]
    groups = rejecting(given, frozenset(given.policies), AT_ONCE.for_proofs())
    findings += [group.finding() for group in groups]
    return sorted(finding for finding in findings if finding.is_fault)


def of_policy(
    given: Prepared, name: str, nodes: Sequence[Node] | None, budget: Budget
) -> list[Finding]:
    """Return findings about one of the policies, and about others because of it."""
    known_policies = given.by_document.get(name)
    chosen = (
        sorted(known_policies.policies, key=lambda policy: policy.order) if known_policies else []
    )
    return _findings(given, chosen, nodes, budget, others=True)


def of_classes(given: Prepared, classes: AbstractSet[str], budget: Budget) -> list[Finding]:
    """Return findings about policies that name one of the classes, and may depend on it."""
    chosen = [
        policy for policy in given.policies if not classes.isdisjoint(classes_of(policy.model))
    ]
    return _findings(given, chosen, None, budget, others=True)


def of_nodes(given: Prepared, nodes: Sequence[Node], budget: Budget) -> Iterator[Finding]:
    """Yield what depends on the nodes of the findings about all policies."""
    trial = Trial(given, nodes, budget.for_trials())
    return (finding for finding in trial.findings(given.policies) if finding.kind in _OF_NODES)


def _findings(
    given: Prepared,
    chosen: Sequence[Policy],
    nodes: Sequence[Node] | None,
    budget: Budget,
    *,
    others: bool = False,
) -> list[Finding]:
    if not chosen:
        return []
    shadows = given.tables.shadows
    pairs = [(policy, finding) for policy in chosen for finding in policy.findings]
    pairs += [pair for policy in chosen for pair in shadows.findings_about(policy)]
    if others:
        pairs += [pair for policy in chosen for pair in shadows.findings_because_of(policy)]
    findings = _of_all_shares(given.by_document, pairs)
    # A setting that reaches no pod has no further findings.
    dead = {
        (finding.file, finding.path) for finding in findings if finding.kind is not Kind.WEAKENS
    }
    reported, everywhere = _rejected(given, chosen, budget.for_proofs())
    tried = Trial(given, nodes, budget.for_trials()).findings(chosen, reported=reported)
    refused = {finding.file for finding in findings if finding.kind is Kind.REFUSED_PODS}
    findings.update(
        finding
        for finding in tried
        if (finding.file, finding.path) not in dead
        and not (finding.kind is Kind.REFUSED_PODS and finding.file in refused)
    )
    return sorted(findings.union(everywhere))


def _of_all_shares(
    policies_by_document: Mapping[str, KnownPolicies], pairs: Iterable[tuple[Policy, Finding]]
) -> set[Finding]:
    """Return the findings, each of which comes after its policy, without those that do not hold
    for all shares of a split, and are not about the split."""
    held: dict[tuple[object, ...], set[Policy]] = {}
    for member, finding in pairs:
        held.setdefault((id(member.document), finding.path, finding.kind), set()).add(member)
    return {
        finding
        for policy, finding in pairs
        if ".split" in finding.path
        or len(held[id(policy.document), finding.path, finding.kind])
        == len(policies_by_document[policy.document.model.name].policies)
    }


def _rejected(
    given: Prepared, chosen: Sequence[Policy], effort: Effort
) -> tuple[set[frozenset[Policy]], list[Finding]]:
    """Return groups of policies that reject all pods of a set, and the findings about them."""
    everywhere = list(rejecting(given, frozenset(chosen), effort))
    reported = {group.policies for group in everywhere}
    reported |= {frozenset(two) for group in everywhere for two in combinations(group.policies, 2)}
    findings = [group.finding() for group in everywhere]
    if effort.is_over:
        # Of any of them, others may be proved to reject every pod.
        findings += [unfinished(policy) for policy in chosen if policy.name in given.tables.demands]
    return reported, findings
