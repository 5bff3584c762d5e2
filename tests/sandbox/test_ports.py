"""Ports that a process can rely on until it listens."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wording import mentions
from webhook.errors import SandboxError
from webhook.sandbox import ports
from webhook.sandbox.ports import free_ports

# Ports for two processes that each take twenty: they meet all the time, and some may be in use.
WITHIN = range(21_000, 21_060)
PROGRAM = f"""
import sys
from webhook.sandbox import ports
from webhook.sandbox.ports import free_ports
names = [str(number) for number in range(20)]
print(*free_ports(names, {WITHIN}).values(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
    assert len(ports) == len(set(ports)) == 40


@pytest.mark.parametrize(
    ("kernels", "end"), [("22000\t60999", 22_000), ("1024\t65535", 32_768), ("", 32_768)]
)
def test_the_kernel_gives_none_of_them_to_a_connection(
    kernels: str, end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are below the range that it takes from for port 0, unless that is nearly all ports."""
    stated = tmp_path / "ip_local_port_range"
    stated.write_text(kernels)
    monkeypatch.setattr(ports, "_RANGE", stated)
    within: list[range] = []
    monkeypatch.setattr(ports, "_take", within.append)
    free_ports(["a"])
    assert within == [range(20_000, end)]


def test_a_port_on_which_somebody_listens_is_not_free() -> None:
    """It is passed over, whoever took it; where there is no other, that is an error."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        with pytest.raises(SandboxError, match=f"from {port} to {port} is free"):
            free_ports(["a"], range(port, port + 1))
    assert free_ports(["a"], range(port, port + 1)) == {"a": port}


def test_a_cache_that_cannot_be_written_is_an_error_with_the_cure(own_cache: Path) -> None:
    """Not a traceback. A file in the place of the folder stands for a read-only home."""
    own_cache.write_text("")
    with pytest.raises(SandboxError) as raised:
        free_ports(["a"])
    mentions(str(raised.value), own_cache, "FAIRLEAD_CACHE")
