"""Connection attempts at the replicas, counted from the packets themselves."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PORT: Final = 8443

_ETH_P_IP: Final = 0x0800
_SO_ATTACH_FILTER: Final = 26
_ESTABLISHED: Final = "01"
# A classic BPF program over an IPv4 packet: keep a TCP SYN without ACK to 198.18.0.0/16.
_FILTER: Final = (
    (0x30, 0, 0, 9),  # the protocol
    (0x15, 0, 7, socket.IPPROTO_TCP),
    (0xB1, 0, 0, 0),  # the header's length
    (0x50, 0, 0, 13),  # TCP's flags
    (0x54, 0, 0, 0x12),
    (0x15, 0, 3, 0x02),
    (0x20, 0, 0, 16),  # the destination
    (0x54, 0, 0, 0xFFFF0000),
    (0x15, 1, 0, 0xC6120000),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 64),
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Somebody began to connect to a replica, by the monotonic clock."""

    address: str
    source_port: int
    at: float


class Wire:
    """Listens to this namespace's loopback, and remembers attempts at the port of reviews."""

    def __init__(self) -> None:
        self._attempts: list[Attempt] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_IP))
        program = b"".join(struct.pack("HBBI", *each) for each in _FILTER)
        held = ctypes.create_string_buffer(program)
        described = struct.pack("HL", len(_FILTER), ctypes.addressof(held))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)
        self._socket.settimeout(0.2)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def attempts(self, address: str, since: float) -> list[Attempt]:
        """Attempts at the address since then; one that the kernel repeats counts once."""
        found = {
            each.source_port: each
            for each in reversed(self._attempts)
            if each.address == address and each.at >= since
        }
        return sorted(found.values(), key=lambda each: each.at)

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                packet, (_, _, kind, _, _) = self._socket.recvfrom(128)
            except TimeoutError:
                continue
            # Loopback shows every packet twice, on its way out and on its way in.
            if kind == socket.PACKET_HOST:
                start = (packet[0] & 0x0F) * 4
                source, target = struct.unpack_from("!HH", packet, start)
                if target == PORT:
                    address = socket.inet_ntoa(packet[16:20])
                    self._attempts.append(Attempt(address, source, time.monotonic()))


def open_connections(address: str) -> int:
    """How many connections to the replica at the address stand now, by the kernel's table."""
    number = int.from_bytes(socket.inet_aton(address), "little")
    wanted = f"{number:08X}:{PORT:04X}"
    rows = (line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:])
    return sum(row[2] == wanted and row[3] == _ESTABLISHED for row in rows)
