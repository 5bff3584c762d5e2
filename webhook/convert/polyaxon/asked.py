"""What the person who converts a file says beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Wanted:
    """name: the Run's, or "". image: of every main container instead of the file's, or "".

    params: values by name, as text; they win over the file's.
    """

    name: str = ""
    image: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
