"""Kubernetes' rules for what a label, an annotation key or a name may look like.

Source: k8s.io/apimachinery/pkg/util/validation.
"""

import re
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from webhook.strict import own_error, shown

_NAME: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SERVICE_NAME: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN_PATTERN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_SYSCTL_WORD: Final = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL: Final = rf"({_SYSCTL_WORD}[./])*{_SYSCTL_WORD}"
_SIGNS: Final = r'"/\\:;|=,+*?<>@\[\]\x00-\x1f\x7f'
_NETBIOS_NAME: Final = rf"[^{_SIGNS}.][^{_SIGNS}]{{0,14}}"
_WINDOWS_USER: Final = (
    rf"(({_NETBIOS_NAME}|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)\\)?"
    rf"[^{_SIGNS}]{{0,103}}[^{_SIGNS}. ]"
)

MAX_NAME: Final = 63
MAX_SUBDOMAIN: Final = 253
# A prefix, a slash and a name.
MAX_KEY: Final = MAX_SUBDOMAIN + 1 + MAX_NAME

_name = re.compile(_NAME, re.ASCII)
_dns_label = re.compile(_DNS_LABEL, re.ASCII)
_service_name = re.compile(_SERVICE_NAME, re.ASCII)
_subdomain = re.compile(SUBDOMAIN_PATTERN, re.ASCII)
_sysctl = re.compile(_SYSCTL, re.ASCII)
_windows_user = re.compile(_WINDOWS_USER)


def is_subdomain(text: str) -> bool:
    """Whether `text` is a DNS-1123 subdomain, as most objects' names are."""
    # The length first: the expressions need quadratic time for a long text that fails.
    return len(text) <= MAX_SUBDOMAIN and _subdomain.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Whether `text` is a DNS-1123 label, as a namespace's name is."""
    return len(text) <= MAX_NAME and _dns_label.fullmatch(text) is not None


def qualified_name_fault(text: str) -> str:
    """Why `text` is no qualified name (`name` or `prefix/name`); empty if it is one."""
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
    """Why `text` is no label value; empty if it is one, as the empty text is."""
    if not text or (len(text) <= MAX_NAME and _name.fullmatch(text)):
        return ""
    return (
        f"it must be at most {MAX_NAME} letters, digits, '-', '_' or '.', "
        "with a letter or a digit at both ends, or empty"
    )


def _checked(noun: str, fault: Callable[[str], str]) -> AfterValidator:
    def check(text: str) -> str:
        if reason := fault(text):
            raise own_error(f"{shown(text)} is not {noun}: {reason}")
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
    if is_dns_label(text):
        return ""
    return (
        f"it must be 1 to {MAX_NAME} lower-case letters, digits or '-', "
        "with a letter or a digit at both ends"
    )


def _service_name_fault(text: str) -> str:
    if len(text) <= MAX_NAME and _service_name.fullmatch(text):
        return ""
    return (
        f"it must be 1 to {MAX_NAME} lower-case letters, digits or '-', "
        "with a letter at the beginning and a letter or a digit at the end"
    )


def _sysctl_fault(text: str) -> str:
    if len(text) <= MAX_SUBDOMAIN and _sysctl.fullmatch(text):
        return ""
    return "it must be words of lower-case letters, digits, '-' or '_', joined by dots"


def _windows_user_fault(text: str) -> str:
    if len(text) <= MAX_SUBDOMAIN and _windows_user.fullmatch(text):
        return ""
    return "it must be USER or DOMAIN\\USER, the user of at most 104 characters and no signs"


def _annotation_key_fault(text: str) -> str:
    # As Kubernetes does it: an annotation's prefix may be written in capitals.
    return qualified_name_fault(text.lower())


_QUALIFIED = rf"({SUBDOMAIN_PATTERN}/)?{_NAME}"
# The pattern of a label's key in JSON Schemas, and one that counts the part after the slash too.
KEY_PATTERN: Final = f"^{_QUALIFIED}$"
COUNTED_KEY_PATTERN: Final = (
    rf"^({SUBDOMAIN_PATTERN}/)?([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]$"
)
LABEL_VALUE_PATTERN: Final = f"^({_NAME})?$"
OBJECT_NAME_PATTERN: Final = f"^{SUBDOMAIN_PATTERN}$"
_ANY_CASE = r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?"

LabelKey = Annotated[
    str, _checked("a label key", qualified_name_fault), _schema(_QUALIFIED, MAX_KEY)
]
LabelValue = Annotated[
    str, _checked("a label value", label_value_fault), _schema(f"({_NAME})?", MAX_NAME)
]
AnnotationKey = Annotated[
    str,
    _checked("an annotation key", _annotation_key_fault),
    _schema(_ANY_CASE + _NAME, MAX_KEY),
]
ResourceName = Annotated[
    str, _checked("a resource name", qualified_name_fault), _schema(_QUALIFIED, MAX_KEY)
]
NamespaceName = Annotated[
    str, _checked("a namespace's name", _dns_label_fault), _schema(_DNS_LABEL, MAX_NAME)
]
ServiceName = Annotated[
    str, _checked("a Service's name", _service_name_fault), _schema(_SERVICE_NAME, MAX_NAME)
]
SysctlName = Annotated[
    str, _checked("a kernel parameter", _sysctl_fault), _schema(_SYSCTL, MAX_SUBDOMAIN)
]
WindowsUserName = Annotated[
    str,
    _checked("a Windows user", _windows_user_fault),
    _schema(_WINDOWS_USER, MAX_SUBDOMAIN),
]
ObjectName = Annotated[
    str, _checked("an object's name", _subdomain_fault), _schema(SUBDOMAIN_PATTERN, MAX_SUBDOMAIN)
]
