"""The resolvers by framework: of each the module of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from tests.frameworks.resolvers.view import Env, View
from webhook.frameworks.table import FRAMEWORKS

RESOLVERS: dict[str, Callable[[Env, Mapping[str, str]], View | None]] = {
    name: import_module(f"tests.frameworks.resolvers.{name}").resolve for name in FRAMEWORKS
}
