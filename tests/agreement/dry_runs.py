"""Creates pods as dry runs, many at a time, and tells all that the API server answered."""

from __future__ import annotations

import asyncio
import io
import json
import re
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from tests.cluster.spaces import ADMINISTRATOR
from webhook import names
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]
CONNECTIONS = 8
_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Answer:
    """Status and object (a Status, if the pod was refused), and the texts of the warnings."""

    status: int
    body: Json
    warnings: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the pod would have been created."""
        return self.status == 201

    @property
    def message(self) -> str:
        """Why the pod was refused."""
        return str(self.body["message"])


@dataclass(frozen=True)
class BothAnswers:
    """A pod, and what the API server made of it without us and with us."""

    sent: Json
    namespace: str
    without: Answer
    with_us: Answer

    def __str__(self) -> str:
        return (
            f"pod: {json.dumps(self.sent)}\nnamespace: {self.namespace}\n"
            f"without: {self.without.status} {self.without.body.get('message', '')}\n"
            f"with us: {self.with_us.status} {self.with_us.body.get('message', '')}"
        )


def dry_runs(
    plane: ControlPlane,
    pods: Sequence[Json],
    namespaces: Callable[[int], Iterable[str]],
    user_of: Callable[[Json], str] = lambda _pod: ADMINISTRATOR,
) -> list[list[Answer]]:
    """For each pod what came of it in each of its namespaces, which its number tells.

    Whoever creates it may be another user, who is then given all rights.
    """

    async def all_of_them() -> list[list[Answer]]:
        connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=_context(plane))
        async with aiohttp.ClientSession(plane.url, connector=connector) as session:
            turns = asyncio.Semaphore(CONNECTIONS)

            async def one(number: int, pod: Json) -> list[Answer]:
                async with turns:
                    user = user_of(pod)
                    return [await _dry_run(session, name, pod, user) for name in namespaces(number)]

            return await asyncio.gather(*(one(number, pod) for number, pod in enumerate(pods)))

    return asyncio.run(all_of_them())


class Case(Protocol):
    """A pod and what came of it."""

    def examine(self) -> str:
        """Return what became of the pod. Raises AssertionError if it is not as it should be."""


def examined(cases: Iterable[Case]) -> Counter[str]:
    """Examine all cases; return what became of how many. Raises AssertionError for them all."""
    became: Counter[str] = Counter()
    failures = []
    for case in cases:
        try:
            became[case.examine()] += 1
        except AssertionError as error:
            failures.append(f"{error}\n{case}")
    counts = ", ".join(f"{what}: {became[what]:,}" for what in sorted(became))
    print(f"\n{became.total():,} pods; {counts}")
    assert not failures, f"{len(failures)}\n" + "\n\n".join(failures[:5])
    return became


def groups_of(user: str) -> list[str]:
    """The groups in which such a user creates pods: all rights, and a node's group for a node."""
    return ["system:masters", *([names.NODE_GROUP] if user.startswith(names.NODE_USERS) else ())]


def _context(plane: ControlPlane) -> ssl.SSLContext:
    credentials = plane.layout.credentials
    context = ssl.create_default_context(cafile=str(credentials / "ca.crt"))
    context.load_cert_chain(credentials / "admin.crt", credentials / "admin.key")
    return context


async def _dry_run(session: aiohttp.ClientSession, namespace: str, pod: Json, user: str) -> Answer:
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    # A stream: some pods are large, and aiohttp warns of such bytes.
    body = io.BytesIO(json.dumps(pod).encode("utf-8", "surrogatepass"))
    headers = [("Content-Type", "application/json")]
    if user != ADMINISTRATOR:
        headers.append(("Impersonate-User", user))
        headers += [("Impersonate-Group", group) for group in groups_of(user)]
    async with session.post(path, data=body, headers=headers) as response:
        warnings = tuple(_texts(response.headers.getall("Warning", [])))
        return Answer(response.status, await response.json(), warnings)


def _texts(headers: Iterable[str]) -> Iterator[str]:
    """The texts in Warning headers (RFC 7234, section 5.5), of which one may hold several."""
    for header in headers:
        for text in _WARNING.findall(header):
            yield re.sub(r"\\(.)", r"\1", text)
