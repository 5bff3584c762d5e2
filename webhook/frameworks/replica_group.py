"""A run's replicas as its framework sees them: counts, ranks, addresses."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import BaseModel

from webhook.frameworks.table import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Made = TypeVar("Made")
Options = TypeVar("Options", bound=BaseModel)


@dataclass(frozen=True)
class Gang:
    """All replicas of one run.

    counts: replicas by role, in the framework's order.
    options: the framework's settings in the spec, or None.
    cluster_domain: appended to addresses if not empty.
    devices: role -> index -> GPUs of the replica's main container (0 if it has none).
    labels: the labels of every pod of the run, including the template's own.
    service_account: that of the pods.
    """

    run: str
    namespace: str
    framework: str | None
    counts: Mapping[str, int]
    options: BaseModel | None = None
    cluster_domain: str = ""
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    service_account: str = "default"

    @cached_property
    def size(self) -> int:
        """The number of replicas."""
        return sum(self.counts.values())

    def rank(self, role: str, index: int) -> int:
        """Return a replica's rank, from 0: role by role in the framework's order."""
        return self._first[role] + index

    @cached_property
    def _first(self) -> dict[str, int]:
        ends = accumulate(self.counts.values(), initial=0)
        return dict(zip(self.counts, ends, strict=False))

    def gpus(self, role: str) -> tuple[int, ...]:
        """Return the GPUs of each replica of a role."""
        return self.devices.get(role) or (0,) * self.counts.get(role, 0)

    @property
    def leader(self) -> str:
        """The address of the replica of rank 0."""
        return self.host(next(iter(self.counts)), 0)

    def settings(self, model: type[Options]) -> Options:
        """Return the framework's settings in the spec, or their defaults."""
        return self.options if isinstance(self.options, model) else model()

    def cached(self, make: Callable[[Gang], Made]) -> Made:
        """Return `make(self)`, computed at the first call and cached on this object.

        For values that all replicas share and whose cost grows with the number of replicas.
        """
        if make not in self._made:
            self._made[make] = make(self)
        return cast("Made", self._made[make])

    @cached_property
    def _made(self) -> dict[Callable[[Gang], object], object]:
        return {}

    @cached_property
    def port(self) -> int:
        """The framework's port, from the run or by default; 0 without a framework."""
        if self.framework is None:
            return 0
        port: int | None = getattr(self.options, "port", None)
        return FRAMEWORKS[self.framework].port if port is None else port

    def pod(self, role: str, index: int) -> str:
        """Return the name of a replica's pod, which is its hostname too."""
        return f"{self.run}-{role}-{index}"

    def host(self, role: str, index: int) -> str:
        """Return a replica's address under the run's headless Service."""
        domain = f".{self.cluster_domain}" if self.cluster_domain else ""
        return f"{self.pod(role, index)}.{self.run}.{self.namespace}.svc{domain}"

    def short_host(self, role: str, index: int) -> str:
        """Return the short address, which is valid in pods of the same namespace."""
        return f"{self.pod(role, index)}.{self.run}"
