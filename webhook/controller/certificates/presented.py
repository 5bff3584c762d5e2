"""Which leaf a replica presents: a TLS handshake that ends once that is seen."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final

from cryptography import x509

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from webhook.controller.certificates.endpoints import Address

# Seconds for one handshake; a replica within a cluster takes some milliseconds.
PATIENCE: Final = 2.0
AT_ONCE: Final = 8


async def serial_number(
    address: Address, server_name: str, *, patience: float = PATIENCE
) -> int | None:
    """The serial number of the leaf that is presented; None if there was no handshake in time.

    Nothing is verified, and nothing is sent: what is presented is compared, not trusted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_connection(
                address.host, address.port, ssl=context, server_hostname=server_name
            )
    except (OSError, ValueError):
        return None
    try:
        session: ssl.SSLObject = writer.get_extra_info("ssl_object")
        presented = session.getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(presented or b"").serial_number
    except ValueError:
        return None
    finally:
        # A polite end would wait for the replica's.
        writer.transport.abort()


async def serial_numbers(
    addresses: Sequence[Address | None], ask: Callable[[Address], Awaitable[int | None]]
) -> tuple[int | None, ...]:
    """Ask every address, several at once; None where there is none, or no answer."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(address: Address | None) -> int | None:
        if address is None:
            return None
        async with turns:
            return await ask(address)

    return tuple(await asyncio.gather(*(one(address) for address in addresses)))
