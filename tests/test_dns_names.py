"""DNS names as the API server takes them."""

from __future__ import annotations

import re
import time

import pytest

from webhook.dns_names import LABEL, SUBDOMAIN, is_label, is_service_name, is_subdomain


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a", "label service subdomain"),
        ("a-1", "label service subdomain"),
        ("1-a", "label subdomain"),
        ("a.b", "subdomain"),
        ("a" * 63, "label service subdomain"),
        ("a" * 64, "subdomain"),
        (".".join(["a" * 63] * 4)[:253], "subdomain"),
        (".".join(["a" * 63] * 4)[:254], ""),
        ("", ""),
        ("-a", ""),
        ("a-", ""),
        ("a..b", ""),
        ("A", ""),
        ("a\n", ""),
        ("a/b", ""),
        ("ä", ""),
        ("٣", ""),
    ],
)
def test_a_name_is_of_these_kinds(text: str, kinds: str) -> None:
    """Nothing that ends a path or a line is part of one."""
    found = {"label": is_label, "service": is_service_name, "subdomain": is_subdomain}
    assert [kind for kind, check in found.items() if check(text)] == kinds.split()


def test_a_long_text_is_refused_at_once() -> None:
    """Matching it would take quadratic time."""
    began = time.process_time()
    for check in (is_label, is_service_name, is_subdomain):
        assert not check("a-" * 1_000_000 + "!")
    assert time.process_time() - began < 1


def test_patterns_are_those_of_the_checks() -> None:
    """Schemas and rules anchor them."""
    assert re.fullmatch(LABEL, "a-1")
    assert re.fullmatch(SUBDOMAIN, "a-1.b")
    assert not re.fullmatch(LABEL, "a.b")
