"""Checking policy files, and holding them against nodes: from paths to findings."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.cli.offline import read_nodes
from webhook.errors import InvalidDocuments
from webhook.policy import source
from webhook.policy.feasibility import feasibility
from webhook.policy.findings import Finding
from webhook.policy.load import load
from webhook.server.folder import read_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webhook.policy.feasibility import Feasibility
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.source import Document


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. `policies` is None if there are errors in the documents themselves.

    `feasibility` is None without nodes, or without policies to hold against them.
    """

    files: Sequence[str]
    findings: Sequence[Finding]
    policies: PolicySet | None
    feasibility: Feasibility | None

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return len(self.findings) - self.errors


def check(paths: Sequence[Path], nodes_file: Path | None) -> Checked | None:
    """Check the policies at the paths; None if they hold nothing. Raises UnreadableInput."""
    files: dict[str, bytes] = {}
    for path in paths:
        files |= {"<stdin>": sys.stdin.buffer.read()} if str(path) == "-" else read_folder(path)
    if not files:
        return None
    nodes = read_nodes(nodes_file) if nodes_file else None
    try:
        policies, warnings = load(files)
    except InvalidDocuments as error:
        found = [each for each in error.findings if isinstance(each, Finding)]
        return Checked(sorted(files), found, None, None)
    if not policies.policies and not policies.classes:
        return None
    if nodes is None:
        return Checked(sorted(files), warnings, policies, None)
    feasible = feasibility(policies, nodes)
    findings = sorted([*warnings, *_placed(feasible, files)])
    return Checked(sorted(files), findings, policies, feasible)


def _placed(feasible: Feasibility, files: Mapping[str, bytes]) -> list[Finding]:
    """The concerns as findings, each at its place in the files."""
    documents: dict[tuple[str, str], Document] = {
        (document.model.kind, document.model.name): document
        for document in source.parse(files).documents
    }
    return [
        documents[each.kind, each.name].finding(each.path, each.message, each.severity)
        for each in feasible.concerns
    ]
