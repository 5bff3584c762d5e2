"""How many GPUs a container asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def gpus(resources: Mapping[str, Any] | None) -> int:
    """The GPUs of a container's resources: nvidia.com/gpu, amd.com/gpu, and those of others.

    Extended resources are whole numbers, and limits and requests of them are the same where both
    are given (https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus). Anything else counts
    as none.
    """
    limits, requests = ((resources or {}).get(part) for part in ("limits", "requests"))
    asked = {
        **(requests if isinstance(requests, dict) else {}),
        **(limits if isinstance(limits, dict) else {}),
    }
    return sum(_whole(count) for name, count in asked.items() if str(name).endswith("/gpu"))


def _whole(quantity: object) -> int:
    text = str(quantity)
    return int(text) if text.isascii() and text.isdigit() else 0
