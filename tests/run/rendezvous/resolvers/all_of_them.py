"""The resolvers by framework: of each the module of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from tests.run.rendezvous.resolvers.view import Env, View
from webhook.run.rendezvous.table import FRAMEWORKS

RESOLVERS: dict[str, Callable[[Env, Mapping[str, str]], View | None]] = {
    name: import_module(f"tests.run.rendezvous.resolvers.{name}").resolve for name in FRAMEWORKS
}
