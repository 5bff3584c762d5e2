"""Names that no object can have. Each leads elsewhere if it is put into a path as it is."""

from __future__ import annotations

from typing import Final

ODD_NAMES: Final = (
    "",
    ".",
    "..",
    " ",
    "\n",
    "/",
    "one/../two",
    "one/status",
    "one?propagationPolicy=Orphan",
    "a?x=1",
    "one#two",
    "one%2f..%2ftwo",
    "%2e%2e/pods",
    "../x",
    "../../../lab/runs/one",
    "one;two",
    "one\x00",
    "One",
    "..one",
    "one\u200b",
    "ünï",
    "a b",
    "a" * 254,
)
ODD_NAMESPACES: Final = (
    "",
    " ",
    "x/y",
    "default/../kube-system",
    "a.b",
    "a?x=1",
    "%2e%2e",
    "a" * 64,
)
