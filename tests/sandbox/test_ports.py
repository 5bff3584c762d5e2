"""Ports that a process can rely on until it listens."""

from __future__ import annotations

import socket
import subprocess
import sys

from webhook.sandbox.ports import free_ports

PROGRAM = """
import sys
from webhook.sandbox.ports import free_ports
print(*free_ports([str(number) for number in range(200)]).values(), flush=True)
sys.stdin.read()
"""


def test_two_processes_never_get_the_same_port() -> None:
    """Not even while neither of them listens yet."""
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as one,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other,
    ):
        lines = [process.stdout.readline().split() for process in (one, other) if process.stdout]
        one.communicate()
        other.communicate()
    ports = [port for line in lines for port in line]
    assert len(ports) == len(set(ports)) == 400


def test_the_kernel_gives_none_of_them_to_a_connection() -> None:
    """They are below the range that it takes from for port 0."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        assert max(free_ports(["a", "b"]).values()) < other.getsockname()[1]


def test_a_port_on_which_somebody_listens_is_not_free() -> None:
    """It is passed over, whoever took it."""
    port = free_ports(["a"])["a"]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))
        assert port not in free_ports([str(number) for number in range(500)]).values()
