"""Pages of HTML from templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.shortening import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment


def html_templates(folder: Path) -> Environment:
    """Return the templates of a folder; they escape every value. `plain` is for text of others,
    which may have control characters.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["plain"] = harmless
    return templates
