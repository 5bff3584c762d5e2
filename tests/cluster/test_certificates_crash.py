"""A keeper that dies at any write is followed by one that goes on, and nobody is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import pytest

from tests.cluster.keepers import Site
from webhook.kube.client import Client, PatchType, connect
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]


class Killed(BaseException):
    """The process is gone: nothing of it goes on."""


@dataclass
class Mortal:
    """Writes as often as `lives`, and dies before the answer to the last of them has come."""

    client: Client
    lives: int
    written: int = 0

    async def create(self, path: str, body: Mapping[str, Any]) -> Json:
        """As the client does."""
        return await self._once(lambda: self.client.create(path, body))

    async def replace(self, path: str, body: Mapping[str, Any]) -> Json:
        """As the client does."""
        return await self._once(lambda: self.client.replace(path, body))

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any],
        patch_type: PatchType,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        """As the client does."""
        return await self._once(lambda: self.client.patch(path, body, patch_type, query=query))

    async def _once(self, write: Callable[[], Any]) -> Json:
        answer: Json = await write()
        self.written += 1
        if self.written == self.lives:
            raise Killed
        return answer


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str) -> Iterator[Site]:
    """An installation in order, with three replicas."""
    site = Site.of(control_plane, namespace)
    site.configure()
    site.deploy()
    yield site
    site.unconfigure()


def begin(site: Site) -> None:
    """Nothing is there but the configuration, as on the first day."""
    for name in (site.installation.authority, site.installation.serving):
        site.delete(name)
    site.unconfigure()
    site.configure()
    site.served = {}


def rotate_authority(site: Site) -> None:
    """Somebody asks for a new authority."""
    site.ask_to_rotate(site.installation.authority)


def rotate_leaf(site: Site) -> None:
    """Somebody asks for a new leaf."""
    site.ask_to_rotate(site.installation.serving)


def lose_authority(site: Site) -> None:
    """The authority's Secret is deleted."""
    site.delete(site.installation.authority)


def lose_both(site: Site) -> None:
    """Both Secrets are deleted."""
    site.delete(site.installation.authority)
    site.delete(site.installation.serving)


def expire(site: Site) -> None:
    """Two years pass without anybody who looks."""
    site.now += 2 * site.terms.authority_lifetime


# What happens, and how many writes bring it in order.
SCENES: Mapping[Callable[[Site], None], int] = {
    begin: 4,
    rotate_authority: 9,
    rotate_leaf: 1,
    lose_authority: 8,
    lose_both: 8,
    expire: 5,
}


def play(site: Site, lives: int, *, guarded: bool) -> int:
    """Let one die after so many writes, and another go on; the writes that the first one made."""

    async def work() -> int:
        async with connect(site.plane.kubeconfig) as client:

            async def check() -> None:
                if guarded:
                    await site.nobody_is_refused(client)

            first = Mortal(client, lives)
            with suppress(Killed):
                await site.until_steady(site.keeper_of(client, cast(Client, first)))
            await check()
            await site.until_steady(site.keeper_of(client, client), check)
        return first.written

    return asyncio.run(work())


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__.replace("_", " "))
def test_the_next_leader_continues(site: Site, scene: Callable[[Site], None]) -> None:
    """Wherever the one before died: after each write in turn.

    A keeper remembers nothing that it needs, so that to die before a write is the same as to die
    after the one before it.
    """
    writes = SCENES[scene]
    # What has expired nobody trusts any more, and on the first day nobody serves.
    guarded = scene not in (begin, expire)
    for lives in range(1, writes + 1):
        site.settle()
        before = site.serving()
        scene(site)
        assert play(site, lives, guarded=guarded) == lives
        site.is_sound()
        assert site.serving() != before
    site.settle()
    scene(site)
    # More than these there are not.
    assert play(site, writes + 1, guarded=guarded) == writes
