"""From policy files to what is exported of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli.offline import policy_files
from webhook.exported.wanted import Enforced, Placed
from webhook.policy import source
from webhook.policy.load import compiled
from webhook.policy.match_model import Match
from webhook.policy.model import PlacementPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def read_placed(
    paths: Sequence[Path], default_priority_class: str, default_toleration_seconds: int
) -> tuple[Placed, list[str]]:
    """The set of all policy files at the paths, and the names of its policies under Audit.

    Raises UnreadableInput and InvalidDocuments.
    """
    return placed_of(policy_files(paths), default_priority_class, default_toleration_seconds)


def placed_of(
    files: Mapping[str, bytes],
    default_priority_class: str = "",
    default_toleration_seconds: int = 300,
) -> tuple[Placed, list[str]]:
    """The same of files' contents, by name. Raises InvalidDocuments."""
    read = source.parse(files)
    policies = compiled(read).policies
    models = {d.model.name: d.model for d in read.documents if isinstance(d.model, PlacementPolicy)}
    enforced = [
        Enforced(
            policy.name,
            models[policy.name].spec.match or Match(),
            models[policy.name].spec.exclude,
            policy.settings,
        )
        for policy in policies.policies
        if policy.enforced
    ]
    audited = [policy.name for policy in policies.policies if not policy.enforced]
    classes = list(policies.classes.values())
    defaults = default_priority_class, default_toleration_seconds
    rolled_out = [policy.name for policy in policies.policies if policy.rollout is not None]
    exceptions = [exception.name for exception in policies.exceptions]
    return Placed(enforced, classes, policies.hash, *defaults, rolled_out, exceptions), audited
