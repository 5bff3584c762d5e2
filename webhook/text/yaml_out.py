"""Objects as YAML that kubectl can apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from webhook.policy.yaml_tree import plain

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Dumper(yaml.CSafeDumper):
    """Strings that some reader of YAML takes for something else are quoted; none is repeated."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  PyYAML's signature
        """Write an object that is in two places twice, without an alias."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif text and plain(text) != text:
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(value: Any, **options: Any) -> str:
    """Return one document, keys in their order, each scalar on a line of its own."""
    options |= {"sort_keys": False, "allow_unicode": True, "width": 2**31 - 1}
    text: str = yaml.dump(value, Dumper=_Dumper, **options)
    return text


def yaml_documents(values: Iterable[Any]) -> str:
    return "---\n".join(map(yaml_text, values))


def yaml_line(value: Any) -> str:
    """Return a value in one line: {pool: gpu}, [a, b], or a plain word."""
    text = yaml_text(value, default_flow_style=True)
    return text.removesuffix("\n").removesuffix("\n...")
