"""Serves with the certificate that one Secret holds, and with the last good one if it is not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from certs.kept import CERTIFICATE, PRIVATE_KEY
from webhook.errors import ServingError
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from certs.kept import Serving
    from certs.pair import Pair
    from webhook.server.tls import ServedCertificate, ServerTls

_logger = logging.getLogger(__name__)


class KeptCertificate:
    """What a Secret holds, as it is told of it; used on the event loop's thread only.

    `where` is the Secret's namespace/name. `on_served` gets each certificate that is taken,
    `on_refused` is called for each one that is not.
    """

    def __init__(
        self,
        where: str,
        tls: ServerTls,
        *,
        on_served: Callable[[ServedCertificate], None] = lambda _served: None,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._where = where
        self._tls = tls
        self._on_served = on_served
        self._on_refused = on_refused
        self._pair: Pair | None = None
        self._bundle = b""
        self._trouble = self._absent()

    @property
    def bundle(self) -> bytes:
        """What the Secret says that clients shall trust: its `ca.crt`; empty if it has none."""
        return self._bundle

    def offered(self, kept: Serving | None) -> None:
        """Take what the Secret holds now; None: it was deleted. Raises nothing."""
        if kept is None:
            self._bundle, self._trouble = b"", self._absent()
            _logger.error("certificate gone", extra={"error": self._trouble})
            return
        self._bundle = kept.bundle
        if kept.leaf == self._pair:
            self._trouble = ""
            return
        try:
            self._serve(kept.leaf)
        except ServingError as error:
            self._trouble = f"Secret {self._where} refused: {error}"
            _logger.error(
                "certificate refused, %s",
                "the last good one serves on" if self._pair else "there is none to serve",
                extra={"secret": self._where, "error": str(error)},
            )
            self._on_refused()

    def condition(self) -> Condition:
        """Tell whether there is a certificate to serve with, and what is wrong with a newer one."""
        served = self._tls.condition()
        if not self._trouble:
            return served
        if self._pair is None:
            return Condition(ready=False, reason=self._trouble)
        return Condition(served.ready, f"{served.reason}; {self._trouble}")

    def _serve(self, pair: Pair) -> None:
        missing = [
            key
            for key, content in ((CERTIFICATE, pair.certificate), (PRIVATE_KEY, pair.private_key))
            if not content
        ]
        if missing:
            raise ServingError(f"it has no {' and no '.join(missing)}")
        served = self._tls.swap(pair.certificate, pair.private_key)
        self._pair, self._trouble = pair, ""
        _logger.info(
            "certificate loaded",
            extra={"secret": self._where, "serial": f"{served.serial_number:x}"},
        )
        self._on_served(served)

    def _absent(self) -> str:
        return (
            f"Secret {self._where} does not exist: `fairlead controller --certificates` makes it, "
            f"or cert-manager; or create it of type kubernetes.io/tls"
        )
