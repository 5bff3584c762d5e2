"""Which kinds of document a reader takes, and what it lets pass in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from webhook.policy import nodes
from webhook.strict import Strict, guess, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.policy.findings import Caution, Path
    from webhook.strict import Problem

M = TypeVar("M", bound=Strict)
_OWN_METADATA: Final = ("name", "labels", "annotations")


def written_by_the_server(path: Path) -> bool:
    """Whether a path is the API server's to write, where nulls and much else are usual."""
    return path[:1] == ("status",) or (
        path[:1] == ("metadata",) and len(path) > 1 and path[1] not in _OWN_METADATA
    )


def _never(_: object) -> bool:
    return False


def _nothing(_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Forms(Generic[M]):
    """A table of the kinds that are known, with what goes for documents of all of them.

    models: by kind.
    called: what such documents are called: "policy documents".
    unjudged: whether a path is nobody's business.
    nulls: whether a null may stand at a path.
    value: from a document's tree to what its model is made of.
    further: what is wrong with a document of which every field is right.
    cautions: what such a document says, yet seldom means: warnings.
    foreign: whether a document, as plain values, is somebody else's and is passed over.
    """

    models: Mapping[str, type[M]]
    called: str
    unjudged: Callable[[Path], bool] = _never
    nulls: Callable[[Path], bool] = _never
    value: Callable[[nodes.Node], Any] = nodes.value
    further: Callable[[M], Iterable[Problem]] = _nothing
    cautions: Callable[[M], Iterable[Caution]] = _nothing
    foreign: Callable[[Mapping[str, Any]], bool] = _never

    @property
    def wanted(self) -> str:
        """What is said where something is no document at all."""
        if len(self.models) == 1:
            return f"want a document of kind {next(iter(self.models))}"
        return f"want a document with apiVersion and kind, one of {', '.join(self.models)}"

    def unknown(self, kind: object) -> str:
        """What is said of a kind that is not known, or not there."""
        known = ", ".join(self.models)
        hint = guess(kind, tuple(self.models)) if isinstance(kind, str) else ""
        if len(self.models) == 1:
            return f"{self.wanted}{'' if kind is None else f', not {kind}'}{hint}"
        if kind is None:
            return f"is required: one of {known}"
        return f"{shown(kind)} is not one of {known}, the kinds of {self.called}{hint}"
