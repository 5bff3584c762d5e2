"""The policy set that is exported, and its settings in folding order with their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from webhook.errors import NotExported
from webhook.exported import cel
from webhook.placement.placement_setting import PARTS, PlacementSetting
from webhook.placement.split import needs_replicas
from webhook.policy import compile as compiling
from webhook.policy import policy_documents
from webhook.policy.compile import shares_apart
from webhook.policy.load import compiled
from webhook.policy.match_model import Match
from webhook.policy.model import PlacementPolicy
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.sources.table import SourceTable

S = TypeVar("S", bound=PlacementSetting, covariant=True)
T = TypeVar("T", bound=PlacementSetting)


class Enforced(NamedTuple):
    """A policy under Enforce: its match and its settings.

    `in_percent`: it is a share of a split by percentages. `requires`: it only has requirements,
    which also apply to pods of DaemonSets. `by_position`: of a share, how many of the last blocks
    of `exclude` are about a replica's position, as its match is; None without a split.
    """

    name: str
    match: Match
    exclude: Sequence[Match]
    settings: Sequence[PlacementSetting]
    in_percent: bool = False
    requires: bool = False
    by_position: int | None = None


class Placed(NamedTuple):
    """A policy set to export: its policies in order, and the cluster's defaults.

    `rolled_out` are the policies that are enforced in some namespaces only, `exceptions` the names
    of the set's exceptions.
    """

    policies: Sequence[Enforced]
    classes: Sequence[CapacityClass]
    set_hash: str
    default_priority_class: str = ""
    default_toleration_seconds: int = 300
    rolled_out: Sequence[str] = ()
    exceptions: Sequence[str] = ()
    sources: SourceTable = SHIPPED


def placed_of(
    files: Mapping[str, bytes],
    default_priority_class: str = "",
    default_toleration_seconds: int = 300,
) -> tuple[Placed, list[str]]:
    """Return the set of these policy files by name, and the names of its policies under Audit.

    Raises InvalidDocuments, and NotExported for policies of teams.
    """
    read = policy_documents.parse(files)
    policies = compiled(read).policies
    if policies.of_teams:
        spaces = ", ".join(policies.of_teams)
        what = (
            f"policies of teams (namespace {spaces}): what they may not set depends on all other "
            "policies of a pod; leave them out, or serve them by the webhook"
        )
        raise NotExported([what])
    models = {d.model.name: d.model for d in read.documents if isinstance(d.model, PlacementPolicy)}
    enforced = [
        Enforced(
            share.name,
            share.spec.match or Match(),
            share.spec.exclude,
            compiling.settings(share, policies.classes),
            needs_replicas(model.shares),
            by_position=len(share.spec.exclude) - len(model.spec.exclude) if model.split else None,
        )
        for model in (models[policy.name] for policy in policies.policies if policy.enforced)
        for share in shares_apart(model)
    ]
    audited = [policy.name for policy in policies.policies if not policy.enforced]
    classes = list(policies.classes.values())
    defaults = default_priority_class, default_toleration_seconds
    rolled_out = [policy.name for policy in policies.policies if policy.rollout is not None]
    exceptions = [exception.name for exception in policies.exceptions]
    placed = Placed(
        enforced,
        classes,
        policies.hash,
        *defaults,
        rolled_out=rolled_out,
        exceptions=exceptions,
        sources=policies.sources,
    )
    return placed, audited


class PositionedSetting(NamedTuple, Generic[S]):
    """A setting, and the position of its policy."""

    at: int
    setting: S


PositionedSettings: TypeAlias = "Sequence[PositionedSetting[PlacementSetting]]"


def of_type(settings: PositionedSettings, kind: type[T]) -> list[PositionedSetting[T]]:
    """Return the settings of this type."""
    return [PositionedSetting(at, setting) for at, setting in settings if isinstance(setting, kind)]


def with_parts_apart(placed: Placed) -> Placed:
    """Split each policy: its requirements become a policy before the rest of it."""
    apart = []
    for policy in placed.policies:
        required = [setting for setting in policy.settings if setting.part == "requirements"]
        rest = [setting for setting in policy.settings if setting.part != "requirements"]
        if required:
            apart.append(policy._replace(settings=required, requires=True))
        if rest:
            apart.append(policy._replace(settings=rest))
    return placed._replace(policies=apart)


def positioned_settings(placed: Placed) -> list[PositionedSetting[PlacementSetting]]:
    """Return every setting, in the order of folding: by part, then by policy."""
    return [
        PositionedSetting(at, setting)
        for part in PARTS
        for at, policy in enumerate(placed.policies)
        for setting in policy.settings
        if setting.part == part
    ]


def standing(
    settings: Sequence[PositionedSetting[T]],
    rivals: Callable[[T, T], bool] = lambda earlier, later: earlier.precludes(later),
) -> Iterator[tuple[PositionedSetting[T], str]]:
    """Yield each setting that can be applied, with the CEL for when it is: the first of its rivals
    wins.

    `rivals(earlier, later)`: whether the later one is lost if the earlier one is applied; it must
    be transitive.
    """
    for number, positioned_setting in enumerate(settings):
        lost = (
            earlier_setting.at
            for earlier_setting in settings[:number]
            if rivals(earlier_setting.setting, positioned_setting.setting)
        )
        before = list(dict.fromkeys(lost))
        if positioned_setting.at not in before:
            yield (
                positioned_setting,
                cel.every(
                    [cel.policy(positioned_setting.at), *(f"!{cel.policy(at)}" for at in before)]
                ),
            )
