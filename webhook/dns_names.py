"""DNS names as Kubernetes defines them: patterns, maximum lengths, checks.

Source: k8s.io/apimachinery/pkg/util/validation.
"""

from __future__ import annotations

import re
from typing import Final

# DNS-1123: a namespace's name, a container's.
LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# DNS-1035: a Service's name.
SERVICE_NAME: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
# DNS-1123: the names of most objects.
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253

_label = re.compile(LABEL, re.ASCII)
_service_name = re.compile(SERVICE_NAME, re.ASCII)
_subdomain = re.compile(SUBDOMAIN, re.ASCII)


def is_label(text: str) -> bool:
    """Return whether `text` is a DNS-1123 label, as a namespace's name is."""
    # The length first: the expressions need quadratic time for a long text that fails.
    return len(text) <= MAX_LABEL and _label.fullmatch(text) is not None


def is_service_name(text: str) -> bool:
    """Return whether `text` is a DNS-1035 label, as a Service's name is."""
    return len(text) <= MAX_LABEL and _service_name.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Return whether `text` is a DNS-1123 subdomain, as most objects' names are."""
    return len(text) <= MAX_SUBDOMAIN and _subdomain.fullmatch(text) is not None
