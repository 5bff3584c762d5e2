"""The policy sets that are compared: of a folder, of a git revision's folder, or of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.cli.diff.git_folder import read_revision
from webhook.errors import UnreadableInput
from webhook.policy.load import load
from webhook.server.folder import read_folder

if TYPE_CHECKING:
    from webhook.policy.policy_set import PolicySet

CLUSTER: Final = "cluster"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a set comes from, as it was said."""

    said: str

    @property
    def is_cluster(self) -> bool:
        """Whether the cluster has it; a folder of that name is ./cluster."""
        return self.said == CLUSTER

    @property
    def is_known(self) -> bool:
        """Whether it may be any of the three."""
        return self.is_cluster or ":" in self.said or Path(self.said).exists()


def read_set(source: Source) -> PolicySet:
    """The set of a folder or a revision. Raises UnreadableInput and InvalidDocuments."""
    said = source.said
    files = read_folder(said) if Path(said).exists() else read_revision(said)
    if not files:
        what = f"{said}: no policy file (*.yaml, *.yml, *.json) in there"
        raise UnreadableInput([f"{what}; /dev/null stands for no policies at all"])
    return load(files).policies
