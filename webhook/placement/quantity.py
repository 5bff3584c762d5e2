"""Resource quantities as exact whole numbers, as the scheduler counts them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Powers of ten and of two, by suffix (resource.Quantity, k8s.io/apimachinery).
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Longer texts are not read, and not cached.
_TEXT_MAX_CHARACTERS: Final = 140
_FORM: Final = re.compile(
    r"([+-]?)([0-9]{1,64})?(?:\.([0-9]{0,64}))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?[0-9]{1,4}))",
    re.ASCII,
)
# The API server caps larger values; up to here, a quantity is exact.
_MAX_EXACT: Final = 2**63 - 1
NANOS: Final = 10**9
_MILLION: Final = 10**6
CPU: Final = "cpu"


class InvalidQuantity(ValueError):
    """Not the text of a quantity."""


def nanos(text: str | float) -> int:
    """Return a quantity in thousandths of a millionth, the finest that the API server keeps.

    What is finer is rounded up, and what is more than 2^63-1 is that many, as the API server does
    (ParseQuantity). Raises InvalidQuantity.
    """
    written = str(text)
    if len(written) > _TEXT_MAX_CHARACTERS:
        raise InvalidQuantity(
            f"{written[:_TEXT_MAX_CHARACTERS]!r}… is not a quantity: it is too long"
        )
    return _nanos(written)


@lru_cache(maxsize=4096)
def _nanos(text: str) -> int:
    match = _FORM.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise InvalidQuantity(f"{text!r} is not a quantity, such as 4, 500m or 16Gi")
    sign, whole, fraction, binary, decimal, exponent = match.groups()
    digits = int((whole or "") + (fraction or ""))
    shift = 9 - len(fraction or "")
    if binary:
        digits <<= _BINARY[binary]
    else:
        shift += int(exponent) if exponent else _DECIMAL[decimal]
    if not digits or shift < -200:
        # A value above zero is rounded up, never to zero.
        value = 1 if digits else 0
    elif shift > 40:
        value = _MAX_EXACT * NANOS
    else:
        value = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
    value = min(value, _MAX_EXACT * NANOS)
    return -value if sign == "-" else value


def unit_of(resource: str) -> int:
    """Return the nanos of the unit in which the scheduler counts a resource."""
    return _MILLION if resource == CPU else NANOS


def counted(resource: str, nano: int) -> int:
    """Return an amount in nanos as the scheduler compares it: cpu in thousandths, others in units.

    Rounded up, as Quantity.MilliValue and Quantity.Value are (framework.Resource.Add), which are
    64 bits wide.
    """
    return min(-(-nano // unit_of(resource)), _MAX_EXACT)


def amount(resource: str, text: str | int) -> int:
    """Return a quantity as the scheduler compares it. Raises InvalidQuantity."""
    return counted(resource, nanos(text))


def format_quantity(resource: str, count: int) -> str:
    """Return a counted amount as exact text: 500m, 4, 16Gi, 1.5Gi, 65500Mi."""
    if resource == CPU:
        return f"{count}m" if count % 1000 else str(count // 1000)
    if "/" in resource or resource == "pods" or count < 1024:
        return str(count)
    for suffix, power in reversed(_BINARY.items()):
        tenths, rest = divmod(count * 10, 1 << power)
        if tenths >= 10 and not rest:
            whole, tenth = divmod(tenths, 10)
            return f"{whole}.{tenth}{suffix}" if tenth else f"{whole}{suffix}"
    return str(count)
