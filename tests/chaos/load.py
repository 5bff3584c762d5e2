"""Creates pods at a constant rate, whatever becomes of those before: matched ones and others."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Final, Self

import orjson

from tests.chaos.connection import Answer, Pool, post
from tests.objects import an_object
from webhook import names

MATCHED: Final = "matched-"
OTHER: Final = "other-"
# A creation that has no answer after so many seconds will not get one.
PATIENCE: Final = 30.0
BURST: Final = 40


@dataclass(slots=True)
class Creation:
    """One creation as its caller saw it. Times by the monotonic clock; `status` 0: no answer."""

    name: str
    sent: float
    late: float
    answered: float = 0.0
    status: int = 0
    message: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def matched(self) -> bool:
        """Whether the pod belongs to a run."""
        return self.name.startswith(MATCHED)

    @property
    def created(self) -> bool:
        """Whether the API server said that it is there."""
        return self.status == 201


class Load:
    """Sends `rate` creations a second, every second one of a pod of a run, in a thread of its own.

    The pods' names are MATCHED or OTHER with a number that grows. A creation waits for no other:
    each takes a connection that is free, or a new one. They come BURST at once, as the pods of a
    run do: one by one, all of them would go over one connection of the API server's to one replica.
    """

    def __init__(self, pool: Pool, namespace: str, rate: float, first: int = 0) -> None:
        self.creations: list[Creation] = []
        self._first = first
        self._pool = pool
        self._path = f"/api/v1/namespaces/{namespace}/pods?fieldManager=fairlead-chaos"
        self._rate = rate
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._main)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Send no more, and wait until all are answered, or will never be."""
        self._over.set()
        self._thread.join()
        if self._error:
            raise self._error

    def settled(self) -> int:
        """The number up to which all creations are over: answered, or given up."""
        creations = list(self.creations)
        pending = (number for number, each in enumerate(creations) if not each.answered)
        return self._first + next(pending, len(creations))

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._error = error

    async def _run(self) -> None:
        began = time.monotonic()
        number = 0
        async with asyncio.TaskGroup() as group:
            while not self._over.is_set():
                due = began + number // BURST * BURST / self._rate
                if (ahead := due - time.monotonic()) > 0:
                    await asyncio.sleep(min(ahead, 0.1))
                    continue
                name = f"{OTHER if number % 2 else MATCHED}{self._first + number:08}"
                number += 1
                creation = Creation(name, time.monotonic(), late=-ahead)
                self.creations.append(creation)
                group.create_task(self._create(creation))
        self._pool.close()

    async def _create(self, creation: Creation) -> None:
        request = post(self._path, manifest(creation.name, matched=creation.matched), "127.0.0.1")
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._pool.ask(request)
        except (OSError, EOFError, TimeoutError) as error:
            creation.message = f"no answer: {error!r}"
        else:
            creation.status = answer.status
            creation.message = "" if creation.created else _message(answer)
            creation.warnings = tuple(answer.all("warning"))
        creation.answered = time.monotonic()


def manifest(name: str, *, matched: bool) -> bytes:
    """A worker of a training run, or the same pod without the labels of one."""
    labels = {"app": "chaos"}
    if matched:
        labels |= {names.RUN: "chaos", names.KIND: "experiment", names.ROLE: "worker"}
    return orjson.dumps(
        an_object(
            "v1",
            "Pod",
            {"name": name, "labels": labels},
            {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "example.invalid/none",
                        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}
                        | {"limits": {"nvidia.com/gpu": "1"}},
                    }
                ],
            },
        )
    )


def _message(answer: Answer) -> str:
    try:
        message: str = orjson.loads(answer.body)["message"]
    except (ValueError, KeyError, TypeError):
        message = answer.body.decode(errors="replace")
    return message[:500]
