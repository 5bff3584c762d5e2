"""Polyaxonfiles in tests: written as text, converted, and what is found said in short."""

from __future__ import annotations

from textwrap import dedent

from webhook.convert.polyaxon.convert import ConversionOptions, Converted, convert


def converted(text: str, *, image: str = "i", **params: str) -> Converted:
    """One file of this text."""
    return convert({"f.yml": dedent(text).encode()}, ConversionOptions(image=image, params=params))


def said(result: Converted) -> list[str]:
    """The findings without their file: `3:1: field: message`."""
    return [str(finding).removeprefix("f.yml:") for finding in result.findings]
