"""What `make image` needs is checked first, and a build gets this machine's settings of pip."""

from __future__ import annotations

import pytest

from tools import image


def test_missing_programs_are_named_by_their_packages() -> None:
    """All of them at once, as apt-get takes them."""
    programs = {"sh": "dash", "no-such-builder": "builder", "no-such-base": "a-base"}
    assert image.missing_packages(programs) == ["a-base", "builder"]


def test_the_base_is_read_with_its_digest() -> None:
    """A name without a digest may be another image tomorrow."""
    digest = "a" * 64
    assert image.pinned_base(f"# base\nARG BASE=python:3@sha256:{digest}\nFROM ${{BASE}}\n") == (
        f"python:3@sha256:{digest}"
    )
    with pytest.raises(ValueError, match="ARG BASE"):
        image.pinned_base("ARG BASE=python:3\n")


def test_a_build_finds_packages_where_this_machine_does() -> None:
    """From the environment and from files; folders of this machine are not there in a build."""
    listed = (
        ":env:.cert='/etc/authority.pem'\n"
        ":env:.find-links='/some/wheels'\n"
        "global.index-url='https://packages.example.invalid/simple?a=b'\n"
    )
    assert image.pip_configuration(listed) == (
        "[global]\n"
        "cert = /etc/authority.pem\n"
        "index-url = https://packages.example.invalid/simple?a=b\n"
    )
