"""Writes the webhook's EndpointSlice as a cluster would: after what happens, and some time late."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Final, Self

from tests.chaos.wire import PORT
from webhook import names
from webhook.errors import SandboxError
from webhook.sandbox.api import Api

_CORE: Final = f"/api/v1/namespaces/{names.NAMESPACE}"
_SLICES: Final = f"/apis/discovery.k8s.io/v1/namespaces/{names.NAMESPACE}/endpointslices"


class Endpoints:
    """The addresses behind the Service fairlead-webhook, which has no selector."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._addresses: list[str] = []
        # When each address that was taken out was gone, by the monotonic clock.
        self._gone: dict[str, float] = {}
        self._timers: list[threading.Timer] = []
        self._lock = threading.Lock()
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        service: dict[str, Any] = {
            "metadata": {"name": names.WEBHOOK},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": "https"}]},
        }
        self._api.create(f"{_CORE}/services", service)
        self._api.create(_SLICES, self._slice())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for timer in self._timers:
            timer.cancel()
            timer.join()
        if self._error and not error:
            raise self._error

    def add(self, address: str) -> None:
        """From now on the API server may call this one."""
        with self._lock:
            self._gone.pop(address, None)
            if address not in self._addresses:
                self._addresses.append(address)
                self._write()

    def remove(self, address: str, lag: float = 0.0) -> None:
        """Take the address out, `lag` seconds from now; it may have been added again by then."""
        if not lag:
            self._remove(address)
            return
        timer = threading.Timer(lag, self._remove, (address,))
        self._timers.append(timer)
        timer.start()

    def gone(self, address: str) -> float | None:
        """Since when the address is out; None if it is not."""
        return self._gone.get(address)

    def wait_gone(self, address: str) -> float:
        """Wait until the address is out; since when."""
        while (since := self.gone(address)) is None:
            if self._error:
                raise self._error
            time.sleep(0.02)
        return since

    def _remove(self, address: str) -> None:
        try:
            with self._lock:
                if address in self._addresses:
                    self._addresses.remove(address)
                    self._write()
                self._gone[address] = time.monotonic()
        except (SandboxError, OSError) as error:
            self._error = error

    def _write(self) -> None:
        path = f"{_SLICES}/{names.WEBHOOK}"
        status, answer = self._api.call("PUT", path, self._slice())
        if status != 200:
            raise SandboxError(f"the endpoints cannot be written: {answer}")

    def _slice(self) -> dict[str, Any]:
        return {
            "metadata": {
                "name": names.WEBHOOK,
                "labels": {"kubernetes.io/service-name": names.WEBHOOK},
            },
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": PORT, "protocol": "TCP"}],
            "endpoints": [
                {"addresses": [each], "conditions": {"ready": True, "serving": True}}
                for each in self._addresses
            ],
        }
