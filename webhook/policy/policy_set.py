"""The policy set: compiled policies, classes and exceptions. Immutable."""

from __future__ import annotations

import hashlib
import itertools
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

import orjson

from webhook.placement import kueue
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fold import fold
from webhook.placement.namespace_setting import NamespaceSetting
from webhook.placement.split import ANY, ends, share_of
from webhook.policy import compile as compiling
from webhook.policy import conditions, operating_system
from webhook.policy.exceptions import Exceptions
from webhook.policy.index import IndexCache, always_tried
from webhook.policy.match_model import Match
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.kueue import Flavor
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.settings import MemberSetting
    from webhook.placement.split import Replica, Share
    from webhook.policy.index import MovedIndex
    from webhook.policy.model import PlacementException, PlacementPolicy
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.subject import Subject
    from webhook.sources.table import SourceTable

# Which policies match together depends on the few policies, not on the many pods. The bound is
# for sets where it does not.
_REMEMBERED_BUNDLES = 4096


class Variant(NamedTuple):
    """Which of its settings a policy has for a pod.

    share:    that of its split
    given_up: the positions of its settings that are given up
    values:   those of the labels of namespaces that it reads, as `Policy.namespace_labels` has
              them; empty without one. None if they are not known: the settings are left out
    """

    share: int = 0
    given_up: tuple[int, ...] = ()
    values: tuple[str, ...] | None = None


_ONLY: Final = Variant()
NO_HASHES: Final[Mapping[str, str]] = MappingProxyType({})
_Key: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[Variant, ...]]


@dataclass(frozen=True)
class Policy:
    """One compiled policy.

    settings: all of its settings; without a split, those of its one variant
    shares:   of its split; empty without one
    variants: the settings for a replica of each share
    wanted:   the match block of which `match` is compiled
    """

    name: str
    priority: int
    description: str
    enforced: bool
    rollout: re.Pattern[str] | None
    match: conditions.Block
    exclude: tuple[conditions.Block, ...]
    settings: tuple[PlacementSetting, ...]
    shares: tuple[Share, ...]
    variants: tuple[tuple[PlacementSetting, ...], ...]
    tested: Mapping[str, frozenset[object]]
    wanted: Match

    @cached_property
    def order(self) -> tuple[int, str]:
        """The sort key of policies: higher priority first, then by name."""
        return -self.priority, self.name

    @property
    def team(self) -> str:
        """The namespace of a team's policy; empty for others."""
        namespace, slash, _ = self.name.partition("/")
        return namespace if slash else ""

    @cached_property
    def is_varied(self) -> bool:
        """Whether its settings are not the same for all replicas at all times."""
        return bool(self.shares or self.fallbacks or self.namespace_labels)

    @property
    def requires(self) -> bool:
        """Whether it has a requirement."""
        return any(setting.part == "requirements" for setting in self.settings)

    @cached_property
    def system(self) -> tuple[int, str] | None:
        """The operating system that it names, in each of its variants."""
        systems = {*map(operating_system.required_system, self.variants)}
        return systems.pop() if len(systems) == 1 else None

    @cached_property
    def fallbacks(self) -> frozenset[str]:
        """The classes of its settings that may be given up."""
        return frozenset(
            setting.capacity.name
            for setting in self.settings
            if isinstance(setting, CapacitySetting) and setting.fallback
        )

    @cached_property
    def namespace_labels(self) -> tuple[str, ...]:
        """The labels of namespaces that its settings read."""
        from_namespace = (w for w in self.settings if isinstance(w, NamespaceSetting))
        return tuple(sorted({setting.label for setting in from_namespace}))

    @cached_property
    def tried(self) -> Policy:
        """This policy, enforced for all pods that it matches, without values of namespaces."""
        if self.enforced and self.rollout is None and not self.namespace_labels:
            return self
        settings, *variants = (
            tuple([w for w in settings if not isinstance(w, NamespaceSetting)])
            for settings in (self.settings, *self.variants)
        )
        return replace(
            self, enforced=True, rollout=None, settings=settings, variants=tuple(variants)
        )

    def share(self, replica: Replica) -> int:
        """Return the position of a replica's share; 0 without a split."""
        return share_of(self.shares, replica) if self.shares else 0

    def variant(self, replica: Replica) -> Variant:
        """Return which of its settings are for a replica."""
        share, history, labels = self.share(replica), replica.history, replica.namespace_labels
        given_up: tuple[int, ...] = ()
        values: tuple[str, ...] | None = None
        if history is not None:
            given_up = tuple(
                at
                for at, setting in enumerate(self.variants[share])
                if isinstance(setting, CapacitySetting) and setting.gives_up(history)
            )
        if labels is not None and self.namespace_labels:
            values = self.values_of(labels)
        return Variant(share, given_up, values)

    def values_of(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the values of the labels that its settings read, of a namespace's labels."""
        return tuple([labels.get(label, "") for label in self.namespace_labels])

    def settings_of(self, variant: Variant) -> Sequence[PlacementSetting]:
        """Return its settings in a variant."""
        settings: Sequence[PlacementSetting] = self.variants[variant.share]
        if variant.given_up:
            settings = [
                setting.give_up()
                if at in variant.given_up and isinstance(setting, CapacitySetting)
                else setting
                for at, setting in enumerate(settings)
            ]
        if not self.namespace_labels:
            return settings
        if variant.values is None:
            return [w for w in settings if not isinstance(w, NamespaceSetting)]
        values = dict(zip(self.namespace_labels, variant.values, strict=True))
        return [
            w.valued(values[w.label]) if isinstance(w, NamespaceSetting) else w for w in settings
        ]

    def enforced_in(self, namespace: str) -> bool:
        """Return whether it is enforced in the namespace, and not only recorded."""
        return self.enforced and (self.rollout is None or self.rollout.match(namespace) is not None)

    def matches(self, subject: Subject) -> bool:
        """Return whether the policy matches the pod."""
        if not self.match.holds(subject):
            return False
        return not (self.exclude and any(part.holds(subject) for part in self.exclude))

    def failed(self, subject: Subject) -> str | None:
        """Return the condition by which the policy does not match the pod; None if it matches."""
        reason = self.match.failed(subject)
        if reason is not None:
            return f"match.{reason}"
        for at, part in enumerate(self.exclude):
            if part.holds(subject):
                return f"exclude[{at}] holds: {', '.join(c.name for c in part.conditions)}"
        return None


class PolicySet:
    """Policies in their order (priority, higher first, then name; then those of teams), their
    classes and exceptions.

    `hash` is of the content alone: the same documents in any order and any files give the same.
    `hashes` are those of `hash_in` by namespace, if there are teams' policies; "" for the others.
    `systems` has the operating system of each policy that names one, by position, `varied` the
    positions of policies with several variants. `sources` is the table of systems by which pods
    are recognized.
    """

    def __init__(
        self,
        policies: Sequence[PlacementPolicy],
        classes: Mapping[str, CapacityClass],
        content_hash: str,
        exceptions: Sequence[PlacementException] = (),
        compiler: Compiler | None = None,
        sources: SourceTable = SHIPPED,
        hashes: Mapping[str, str] = NO_HASHES,
    ) -> None:
        compiler = compiler or Compiler()
        classes = compiler.classes(classes)
        listed = sorted(compiler.policies(policies, classes), key=attrgetter("order"))
        # Those of teams come last, so that the positions of the others do not depend on them.
        listed.sort(key=attrgetter("team"))
        self.policies: tuple[Policy, ...] = tuple(listed)
        self.systems = _systems(self.policies)
        self.varied = _varied(self.policies)
        self.classes = dict(classes)
        self.sources = sources
        self.exceptions = Exceptions(exceptions)
        self.hash = content_hash
        self._hashes = hashes
        self._indexes = compiler.indexes
        self._matches_of_exceptions = [exception.spec.match for exception in exceptions]
        self._bundles: dict[_Key, Bundle] = {}
        self._trial: str | None = None

    @cached_property
    def of_teams(self) -> Mapping[str, tuple[int, ...]]:
        """The positions of teams' policies by namespace; they come after all others."""
        positions: dict[str, tuple[int, ...]] = {}
        for at, policy in enumerate(self.policies):
            if policy.team:
                positions[policy.team] = (*positions.get(policy.team, ()), at)
        return positions

    def hash_in(self, namespace: str) -> str:
        """Return the hash of what may decide on pods of a namespace."""
        return self._hashes.get(namespace) or self._hashes.get("", self.hash)

    @cached_property
    def tested(self) -> Mapping[str, frozenset[object]]:
        """The match fields that a policy or exception gives, by name, each with all its values."""
        parts = [policy.tested for policy in self.policies]
        parts.append(conditions.collect_tested(self._matches_of_exceptions))
        return conditions.merge_tested(parts)

    @property
    def tested_labels(self) -> Iterable[tuple[str, str | None]]:
        """The labels of pods by which policies and exceptions match; None for any value."""
        pairs: Iterable[Any] = self.tested.get("pod_selector", ())
        return pairs

    @cached_property
    def sets_labels(self) -> bool:
        """Whether a policy sets a field by which the owners of pods select them."""
        settings = itertools.chain.from_iterable(policy.settings for policy in self.policies)
        return any(setting.row.selected for setting in settings)

    @cached_property
    def _index(self) -> MovedIndex:
        # Those of a team are few, and tried in their namespace alone.
        shared = [policy for policy in self.policies if not policy.team]
        return self._indexes.index(shared, lambda: [policy.wanted for policy in shared])

    def indexed(self) -> Self:
        """Return this set, ready for its first pod; it takes as long as to walk some ten times."""
        _ = self.tested, self.sets_labels, self._index
        return self

    def with_exceptions_of(self, other: PolicySet) -> PolicySet:
        """Return this set with the other's exceptions in place of its own; the hash stays as it
        is."""
        made = copy(self)
        made.exceptions = other.exceptions
        # At least all fields of the exceptions; more do no harm.
        made.tested = conditions.merge_tested((made.tested, other.tested))
        return made

    def only(self, positions: Sequence[int]) -> PolicySet:
        """Return a set of the policies at these positions, all of them enforced, without
        exceptions and without values of namespaces."""
        made = copy(self)
        some = [self.policies[at] for at in sorted(positions)]
        made.policies = tuple([policy.tried for policy in some])
        made.systems = _systems(made.policies)
        made.varied = _varied(made.policies)
        made.exceptions = Exceptions(())
        made.__dict__.pop("tested", None)
        made.__dict__.pop("sets_labels", None)
        made.__dict__.pop("of_teams", None)
        made.__dict__["_index"] = always_tried(sum(not policy.team for policy in some))
        made._matches_of_exceptions = []  # noqa: SLF001
        made._bundles = {}  # noqa: SLF001
        return made

    def enforcing(self, policy: str = "") -> PolicySet:
        """Return this set with the policy enforced everywhere, or without a name every policy.

        All others that are not enforced have no effect, and are not recorded.
        """
        made = copy(self)
        made._trial = policy  # noqa: SLF001  of this class
        return made

    def divide(
        self, positions: tuple[int, ...], namespace: str
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the positions of the policies that are enforced in the namespace, and of those
        under Audit there."""
        trial, policies = self._trial, self.policies
        enforced = tuple(
            [
                at
                for at in positions
                if policies[at].enforced_in(namespace) or trial in ("", policies[at].name)
            ]
        )
        if len(enforced) == len(positions):
            return positions, ()
        if trial is not None:
            return enforced, ()
        return enforced, tuple([at for at in positions if at not in enforced])

    def matching(self, subject: Subject) -> tuple[int, ...]:
        """Return the positions of the policies that match, in their order."""
        policies = self.policies
        matched = [at for at in self._index.candidates(subject) if policies[at].matches(subject)]
        if teams := self.of_teams.get(subject.namespace):
            matched += [at for at in teams if policies[at].matches(subject)]
        return tuple(matched)

    def bundle(
        self,
        positions: tuple[int, ...],
        flavor: Flavor | None = None,
        requiring: tuple[int, ...] = (),
        replica: Replica = ANY,
    ) -> Bundle:
        """Return the bundle of the policies at these positions, for a replica.

        Those that are also in `requiring` give only their requirements. `flavor` is what Kueue put
        into the pod. If it comes before overrides, the bundle has no setting that contradicts it.
        """
        variants = self.variants(positions, replica)
        key = (positions, requiring, variants)
        bundle = self._bundles.get(key)
        if bundle is None:
            bundle = self._folded(positions, requiring, variants)
            if len(self._bundles) >= _REMEMBERED_BUNDLES:
                self._bundles.clear()
            self._bundles[key] = bundle
        if flavor is not None and flavor.kept and kueue.contradicted(flavor, bundle):
            # A pod's author chooses its selector: such a bundle is not cached.
            return self._folded(positions, requiring, variants, kueue.settings(flavor))
        return bundle

    def turns(self, replicas: int | None, namespace: str) -> set[int]:
        """Return the replica indexes whose replicas policies may treat otherwise than those before.

        By a list of indexes, or a split of so many replicas. Of teams' policies, only those of the
        namespace count.
        """
        tested = self.tested
        if self.of_teams:
            counted = [policy for policy in self.policies if policy.team in ("", namespace)]
            exempt = conditions.collect_tested(self._matches_of_exceptions)
            tested = conditions.merge_tested([*(policy.tested for policy in counted), exempt])
        listed = [at for at in tested.get("replica_indexes", ()) if isinstance(at, int)]
        shares = (self.policies[at].shares for at in self.varied)
        split = (
            end
            for policy_shares in shares
            if policy_shares
            for end in ends(policy_shares, replicas)
        )
        return {*listed, *(at + 1 for at in listed), *split}

    def variants(self, positions: Sequence[int], replica: Replica) -> tuple[Variant, ...]:
        """Return the variant for a replica of each policy that has several, in their order."""
        if not self.varied:
            return ()
        policies = self.policies
        return tuple([policies[at].variant(replica) for at in positions if at in self.varied])

    def _folded(
        self,
        positions: tuple[int, ...],
        requiring: tuple[int, ...],
        variants: tuple[Variant, ...],
        ahead: Sequence[MemberSetting] = (),
    ) -> Bundle:
        chosen = dict(zip((at for at in positions if at in self.varied), variants, strict=True))
        settings = [
            setting
            for at in positions
            for setting in self.policies[at].settings_of(chosen.get(at, _ONLY))
            if setting.part == "requirements" or at not in requiring
        ]
        return fold([self.policies[at].name for at in positions], settings, ahead)


def _systems(policies: Sequence[Policy]) -> dict[int, tuple[int, str]]:
    return {at: policy.system for at, policy in enumerate(policies) if policy.system is not None}


def _varied(policies: Sequence[Policy]) -> frozenset[int]:
    return frozenset([at for at, policy in enumerate(policies) if policy.is_varied])


class Compiler:
    """Compiles policies and caches them for the next set: a write changes one of a thousand.

    Not for several threads at once.
    """

    def __init__(self) -> None:
        # By the identity of the model: to look at each of a thousand takes longer.
        self._policies: dict[int, tuple[PlacementPolicy, Policy]] = {}
        self._classes: dict[str, CapacityClass] = {}
        # The classes with which the policies are compiled.
        self._compiled_with: Mapping[str, CapacityClass] = {}
        self.indexes = IndexCache()

    def classes(self, classes: Mapping[str, CapacityClass]) -> dict[str, CapacityClass]:
        """Return the classes; unchanged ones are the same objects as before.

        Settings of a set are compared by the identity of their class.
        """
        old = self._classes
        self._classes = {
            name: old[name] if old.get(name) == new else new for name, new in classes.items()
        }
        return self._classes

    def policies(
        self, models: Sequence[PlacementPolicy], classes: Mapping[str, CapacityClass]
    ) -> list[Policy]:
        """Return the models compiled, in their order."""
        old = self._compiled_with
        same = old.keys() == classes.keys() and all(old[name] is classes[name] for name in old)
        entries = [
            entry
            if entry and (same or _of_classes(entry[1], classes))
            else (model, _compiled(model, classes))
            for entry, model in zip(map(self._policies.get, map(id, models)), models, strict=True)
        ]
        self._policies = dict(zip(map(id, models), entries, strict=True))
        self._compiled_with = classes
        return [compiled for _, compiled in self._policies.values()]


def _of_classes(policy: Policy, classes: Mapping[str, CapacityClass]) -> bool:
    """Return whether the policy was compiled with these class objects."""
    return all(
        setting.capacity is classes.get(setting.capacity.name)
        for setting in policy.settings
        if isinstance(setting, CapacitySetting)
    )


def _compiled(policy: PlacementPolicy, classes: Mapping[str, CapacityClass]) -> Policy:
    rollout, wanted = policy.spec.rollout, policy.spec.match or Match()
    variants = tuple(compiling.settings(variant, classes) for variant in policy.variants())
    settings = [*variants[0]]
    for setting in itertools.chain(*variants[1:]):
        if setting not in settings:
            settings.append(setting)
    tested = conditions.collect_tested([wanted, *policy.spec.exclude])
    if read := {(w.label, None) for w in settings if isinstance(w, NamespaceSetting)}:
        # They decide, too: any value of these labels.
        tested = conditions.merge_tested([tested, {"namespace_selector": frozenset(read)}])
    return Policy(
        name=policy.name,
        priority=policy.spec.priority,
        description=policy.spec.description or "",
        enforced=policy.spec.enforcement == "Enforce",
        rollout=conditions.globs(rollout.namespaces) if rollout else None,
        match=conditions.block(wanted),
        exclude=tuple(conditions.block(part) for part in policy.spec.exclude),
        settings=tuple(settings),
        shares=policy.shares,
        variants=variants,
        tested=tested,
        wanted=wanted,
    )


def content(document: PolicyDocument) -> bytes:
    """Return what counts of a document; its layout does not."""
    return orjson.dumps(
        [document.kind, document.name, compiling.written_spec(document)],
        option=orjson.OPT_SORT_KEYS,
    )


def hash_of(contents: Iterable[bytes]) -> str:
    """Return the SHA-256 of documents' contents, in hexadecimal; their order does not count."""
    return hashlib.sha256(b"\n".join(sorted(contents))).hexdigest()
