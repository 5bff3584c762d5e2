"""--plugins: which admission plugins the API server runs beside those that it always runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.placement.plugin_tolerations import OPTIONAL
from webhook.questions.completion import words_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.evaluation.world import World

PLUGINS: Final = "--plugins"
NONE: Final = "none"
_ALLOWED: Final = ", ".join((*OPTIONAL, NONE))


class PluginNames(click.ParamType[tuple[str, ...]]):
    """Names of plugins, joined by commas, or `none`."""

    name = "plugins"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Check the names; click reports an error."""
        if isinstance(value, tuple):
            return value
        names = [name.strip() for name in str(value).split(",")]
        if names == [NONE]:
            return ()
        for name in names:
            if name not in OPTIONAL:
                self.fail(f"unknown plugin {name!r}; want one or more of {_ALLOWED}", param, ctx)
        return tuple(names)


PLUGINS_OPTION: Final[Mapping[str, Any]] = {
    "type": PluginNames(),
    "metavar": "NAMES",
    "shell_complete": words_of(lambda: (*OPTIONAL, NONE)),
    "help": "Which of the admission plugins ExtendedResourceToleration (on GKE) and "
    "PodTolerationRestriction (on OpenShift) the API server runs, joined by commas, or `none`. "
    "They add tolerations to pods. Default: what a dry run of a pod in the cluster shows, if the "
    "command reads its policies and nodes; else unknown.",
}


def with_plugins(world: World, enabled: tuple[str, ...] | None) -> World:
    """Return the world with these plugins; None if none are given."""
    from webhook.evaluation.plugins import running_plugins

    if enabled is None:
        return world
    return replace(world, plugins=world.plugins._replace(running=running_plugins(enabled)))
