"""Run files to Runs: every Run in them, and everything that is wrong with their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook import names
from webhook.policy import nodes, reader
from webhook.policy.forms import Forms, written_by_the_server
from webhook.run.model import Run
from webhook.run.nulls import without_nulls

if TYPE_CHECKING:
    from collections.abc import Mapping

Document: TypeAlias = reader.Document[Run]
Runs: TypeAlias = reader.Documents[Run]

_OTHERS: Final = ("PlacementPolicy", "CapacityClass", "PolicyTest")


def read(files: Mapping[str, bytes]) -> Runs:
    """Reads Run files, YAML or JSON, by name; never raises, whatever is in them.

    What stands beside a Run for kubectl's sake, such as a volume claim, and policies too, is
    passed over, and named in `foreign`. A null is what the API server takes it for: a field that
    is left out.
    """
    return reader.read(files, _RUNS)


def _is_foreign(document: Mapping[str, Any]) -> bool:
    """Whether a document is another object of Kubernetes, or another of Fairlead's."""
    version, kind = document.get("apiVersion"), document.get("kind")
    # A Run of another group is a slip in the group rather than somebody else's.
    if not isinstance(version, str) or not isinstance(kind, str) or kind == names.RUN_KIND:
        return False
    return not version.startswith(names.PREFIX) or kind in _OTHERS


def _everywhere(_: object) -> bool:
    return True


def _value(node: nodes.Node) -> Any:
    return without_nulls(nodes.value(node))


_RUNS: Final = Forms(
    {names.RUN_KIND: Run},
    "runs",
    unjudged=written_by_the_server,
    nulls=_everywhere,
    value=_value,
    foreign=_is_foreign,
)
