"""What `fairlead run convert` reads and prints."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.yaml_out import yaml_text
from webhook.convert.polyaxon import Converted, Wanted, convert
from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from webhook.policy.findings import Finding

_MARK: Final = "warning:"


def wanted(name: str, image: str, params: Sequence[str]) -> Wanted:
    """What the options say. Raises UsageError for a param without a value."""
    given: dict[str, str] = {}
    for param in params:
        key, equals, value = param.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--param {param}: want NAME=VALUE")
        given[key.strip()] = value
    return Wanted(name, image, given)


def converted(paths: Sequence[Path], asked: Wanted) -> Converted:
    """What becomes of the files. Raises UnreadableInput with all that cannot be read."""
    files: dict[str, bytes] = {}
    problems: list[str] = []
    for path in paths:
        try:
            content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
            files[str(path)] = content
        except OSError as error:
            problems.append(f"{path}: {error.strerror}")
    if problems:
        raise UnreadableInput(problems)
    return convert(files, asked)


def lines(result: Converted) -> Iterator[str]:
    """A line for each error and warning."""
    for finding in result.findings:
        yield _line(finding)


def _line(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}:{finding.column}:"
    rest = str(finding).removeprefix(place)
    if finding.severity == "warning":
        rest = rest.replace(_MARK, click.style(_MARK, fg="yellow", bold=True), 1)
    return click.style(place, bold=True) + rest


def text(document: Mapping[str, Any], *, as_json: bool) -> str:
    """The Run as text that kubectl takes."""
    if as_json:
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return yaml_text(document)
