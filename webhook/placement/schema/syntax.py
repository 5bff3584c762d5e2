"""The syntax of values in documents: labels, annotation keys, names, times, lengths of lists.

Source: k8s.io/apimachinery/pkg/util/validation; of times RFC 3339, to the second, with a zone.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from webhook.dns_names import (
    LABEL,
    MAX_LABEL,
    MAX_SUBDOMAIN,
    SERVICE_NAME,
    SUBDOMAIN,
    is_label,
    is_service_name,
    is_subdomain,
)
from webhook.strict import Problem, own_error, quoted
from webhook.times import SPAN_PATTERN, parse_span

_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SYSCTL_WORD: Final = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"({_SYSCTL_WORD}[./])*{_SYSCTL_WORD}"
_SIGNS: Final = r'"/\\:;|=,+*?<>@\[\]\x00-\x1f\x7f'
_NETBIOS_NAME: Final = rf"[^{_SIGNS}.][^{_SIGNS}]{{0,14}}"
_WINDOWS_USER: Final = (
    rf"(({_NETBIOS_NAME}|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)\\)?"
    rf"[^{_SIGNS}]{{0,103}}[^{_SIGNS}. ]"
)

# Of the part after the slash of a key, and of a label's value.
MAX_NAME: Final = 63
# A prefix, a slash and a name.
MAX_KEY: Final = MAX_SUBDOMAIN + 1 + MAX_NAME

_name = re.compile(_NAME, re.ASCII)
_sysctl = re.compile(_SYSCTL, re.ASCII)
_windows_user = re.compile(_WINDOWS_USER)
# Of each list of objects in a placement. Without a limit the API server reckons with as many items
# as a request of 3 MiB holds, and refuses rules that would cost too much then.
MAX_LISTED: Final = 64
# Fields that hold labels or annotations, by keys that anybody may choose; and lists of such keys.
MAPPINGS: Final = ("nodeSelector", "labels", "annotations", "matchLabels")
KEY_LISTS: Final = ("matchLabelKeys", "mismatchLabelKeys")
# The days that each month has; of the years from 2000 to 2099 every fourth is a leap year.
_DAY: Final = (
    r"(20[0-9]{2}-((0[13578]|1[02])-31|(0[13-9]|1[0-2])-(29|30)"
    r"|(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8]))|20([02468][048]|[13579][26])-02-29)"
)
# Only one of the forms of RFC 3339, so that timestamps can be sorted and compared as text.
MOMENT_PATTERN: Final = (
    rf"^{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
IS_NO_MOMENT: Final = (
    "is not a valid timestamp: give date, time and zone, such as 2026-12-01T18:00:00Z or "
    "2026-12-01T18:00:00+01:00"
)
_form = re.compile(MOMENT_PATTERN, re.ASCII)
# The syntax of resource.Quantity (k8s.io/apimachinery): a number with a suffix.
_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_QUANTITY = rf"^[+-]?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?{_NUMBER}))?$"
_quantity_text = re.compile(_QUANTITY, re.ASCII)


def qualified_name_fault(text: str) -> str:
    """Return why `text` is not a qualified name (`name` or `prefix/name`); empty if it is one."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return (
            f"what comes before the slash must be a DNS name in lower case of at most "
            f"{MAX_SUBDOMAIN} characters"
        )
    if len(name) > MAX_NAME or _name.fullmatch(name) is None:
        part = "what comes after the slash" if slash else "it"
        return (
            f"{part} must be 1 to {MAX_NAME} letters, digits, '-', '_' or '.', "
            "with a letter or a digit at both ends"
        )
    return ""


def label_value_fault(text: str) -> str:
    """Return why `text` is not a label value; empty if it is one. The empty text is one."""
    if not text or (len(text) <= MAX_NAME and _name.fullmatch(text)):
        return ""
    return (
        f"it must be at most {MAX_NAME} letters, digits, '-', '_' or '.', "
        "with a letter or a digit at both ends, or empty"
    )


def _checked(noun: str, fault: Callable[[str], str]) -> AfterValidator:
    def check(text: str) -> str:
        if reason := fault(text):
            raise own_error(f"{quoted(text)} is not {noun}: {reason}")
        return text

    return AfterValidator(check)


def _schema(pattern: str, max_length: int, **more: object) -> WithJsonSchema:
    return WithJsonSchema(
        {"type": "string", "pattern": f"^{pattern}$", "maxLength": max_length, **more}
    )


def _subdomain_fault(text: str) -> str:
    if is_subdomain(text):
        return ""
    return (
        f"it must be 1 to {MAX_SUBDOMAIN} lower-case letters, digits, '-' or '.', "
        "with a letter or a digit at both ends of each part"
    )


def _dns_label_fault(text: str) -> str:
    if is_label(text):
        return ""
    return (
        f"it must be 1 to {MAX_LABEL} lower-case letters, digits or '-', "
        "with a letter or a digit at both ends"
    )


def _service_name_fault(text: str) -> str:
    if is_service_name(text):
        return ""
    return (
        f"it must be 1 to {MAX_LABEL} lower-case letters, digits or '-', "
        "with a letter at the beginning and a letter or a digit at the end"
    )


def sysctl_fault(text: str) -> str:
    if len(text) <= MAX_SUBDOMAIN and _sysctl.fullmatch(text):
        return ""
    return "it must be words of lower-case letters, digits, '-' or '_', joined by dots"


def _windows_user_fault(text: str) -> str:
    if len(text) <= MAX_SUBDOMAIN and _windows_user.fullmatch(text):
        return ""
    return "it must be USER or DOMAIN\\USER, the user of at most 104 characters and no signs"


def _taint_keys_fault(text: str) -> str:
    if len(text) <= MAX_KEY and _taint_keys.fullmatch(text):
        return ""
    return "it must be a key, the beginning of keys with a * at the end, or * alone for every key"


def annotation_key_fault(text: str) -> str:
    # As Kubernetes does it: an annotation's prefix may be written in capitals.
    return qualified_name_fault(text.lower())


_QUALIFIED = rf"({SUBDOMAIN}/)?{_NAME}"
# The pattern of a label's key in JSON Schemas, and one that counts the part after the slash too.
KEY_PATTERN: Final = f"^{_QUALIFIED}$"
# It stands in a definition more than a hundred times, so the DNS name has a shorter form.
COUNTED_KEY_PATTERN: Final = (
    r"^([a-z0-9]((-*|\.)[a-z0-9])*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$"
)
LABEL_VALUE_PATTERN: Final = f"^({_NAME})?$"
OBJECT_NAME_PATTERN: Final = f"^{SUBDOMAIN}$"
_ANY_CASE = r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?"

# Of a taint's key, perhaps with a prefix, or of its beginning.
_TAINT_KEYS: Final = r"(\*|[A-Za-z0-9]([A-Za-z0-9_./-]*[A-Za-z0-9]|[A-Za-z0-9_./-]*\*)?)"
_taint_keys = re.compile(_TAINT_KEYS, re.ASCII)
TaintKeys = Annotated[
    str, _checked("a taint's key", _taint_keys_fault), _schema(_TAINT_KEYS, MAX_KEY)
]
LabelKey = Annotated[
    str, _checked("a label key", qualified_name_fault), _schema(_QUALIFIED, MAX_KEY)
]
LabelValue = Annotated[
    str, _checked("a label value", label_value_fault), _schema(f"({_NAME})?", MAX_NAME)
]
AnnotationKey = Annotated[
    str,
    _checked("an annotation key", annotation_key_fault),
    _schema(_ANY_CASE + _NAME, MAX_KEY),
]
ResourceName = Annotated[
    str, _checked("a resource name", qualified_name_fault), _schema(_QUALIFIED, MAX_KEY)
]
NamespaceName = Annotated[
    str, _checked("a namespace's name", _dns_label_fault), _schema(LABEL, MAX_LABEL)
]
ServiceName = Annotated[
    str, _checked("a Service's name", _service_name_fault), _schema(SERVICE_NAME, MAX_LABEL)
]
SysctlName = Annotated[
    str, _checked("a kernel parameter", sysctl_fault), _schema(_SYSCTL, MAX_SUBDOMAIN)
]
WindowsUserName = Annotated[
    str,
    _checked("a Windows user", _windows_user_fault),
    _schema(_WINDOWS_USER, MAX_SUBDOMAIN),
]
ObjectName = Annotated[
    str, _checked("an object's name", _subdomain_fault), _schema(SUBDOMAIN, MAX_SUBDOMAIN)
]


def _quantity(value: object) -> object:
    if isinstance(value, float):
        raise own_error(f"write {value} in quotes, or as {value * 1000:g}m")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise own_error("want a quantity: a whole number, or text such as 500m or 16Gi")
    if isinstance(value, str) and not _quantity_text.fullmatch(value):
        raise own_error(f"{quoted(value)} is not a quantity, such as 4, 500m or 16Gi")
    return value


Quantity: TypeAlias = Annotated[
    str | int,
    BeforeValidator(_quantity),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": _QUANTITY}]}),
]


def long_lists(value: object, at: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield every list of objects below `value` that has more than MAX_LISTED items; `at` is its
    path."""
    for path, child in ((at, value), *_below(value, at)):
        if isinstance(child, list) and len(child) > MAX_LISTED and isinstance(child[0], dict):
            yield Problem(path, f"want at most {MAX_LISTED} items, not {len(child)}")


def crowded(value: object, at: tuple[str | int, ...]) -> Iterator[Problem]:
    """As long_lists, and every mapping by free keys and list of keys with more than MAX_LISTED."""
    yield from long_lists(value, at)
    for path, child in _below(value, at):
        free = isinstance(child, dict) and path[-1] in MAPPINGS
        listed = isinstance(child, list) and path[-1] in KEY_LISTS
        if (free or listed) and len(child) > MAX_LISTED:
            what = "keys" if free else "items"
            yield Problem(path, f"want at most {MAX_LISTED} {what}, not {len(child)}")


def _below(value: object, at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each field of each mapping below `value`, with its path."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*at, key), child
            yield from _below(child, (*at, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _below(child, (*at, index))


def _checked_moment(text: str) -> str:
    if not _form.fullmatch(text):
        raise own_error(f"{quoted(text)} {IS_NO_MOMENT}")
    return text


def span(least: str, most: str) -> Any:
    """Return the type of a duration between two others."""

    def check(text: str) -> str:
        try:
            duration = parse_span(text)
        except ValueError as error:
            raise own_error(str(error)) from None
        if not parse_span(least) <= duration <= parse_span(most):
            raise own_error(f"{text} is out of range: want {least} to {most}")
        return text

    return Annotated[
        str,
        AfterValidator(check),
        BeforeValidator(_with_unit),
        _schema(SPAN_PATTERN, 20, minLength=2),
    ]


def _with_unit(value: object) -> object:
    if isinstance(value, int | float):
        raise own_error(f"{value} has no unit: want a value such as 15m, 90s, 1h30m")
    return value


Moment = Annotated[
    str,
    AfterValidator(_checked_moment),
    WithJsonSchema({"type": "string", "format": "date-time", "pattern": MOMENT_PATTERN}),
]
