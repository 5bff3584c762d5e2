"""Processes that end when they should, and only then."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.wording import mentions
from webhook.errors import SandboxError
from webhook.sandbox import processes
from webhook.sandbox.api import wait_until
from webhook.sandbox.processes import Lifeline, Process, alive, end_recorded, free_ports, recorded


def sleeper(directory: Path) -> list[str]:
    """A command that waits for ever, and names the directory in its arguments."""
    (directory / "empty").touch()
    return ["/usr/bin/tail", "-f", str(directory / "empty")]


def test_another_command_can_end_what_one_has_started(tmp_path: Path) -> None:
    """The process ids lie in the directory, so `down` needs nothing from `up`."""
    process = Process("sleeper", sleeper(tmp_path), tmp_path)
    assert recorded(tmp_path) == {"sleeper": process.pid}
    assert alive(process.pid, tmp_path)
    end_recorded(tmp_path)
    assert not alive(process.pid, tmp_path)
    process.stop()


def test_a_stranger_with_a_recorded_id_is_left_alone(tmp_path: Path) -> None:
    """Process ids come round again: one that works elsewhere is not ours."""
    with subprocess.Popen(["/bin/sleep", "600"]) as stranger:
        (tmp_path / "pids").mkdir()
        (tmp_path / "pids" / "etcd").write_text(str(stranger.pid))
        assert not alive(stranger.pid, tmp_path)
        end_recorded(tmp_path)
        assert stranger.poll() is None
        stranger.kill()


def test_a_process_that_exits_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    """Whoever waits for it learns why there is nothing to wait for."""
    process = Process("short", ["/bin/sh", "-c", "echo bad flag; exit 3"], tmp_path)
    deadline = time.monotonic() + 60
    with pytest.raises(SandboxError, match=r"(?s)short .*code 3:.*bad flag"):
        wait_until("what never comes", lambda: False, process.check, deadline)
    process.stop()


def test_a_group_dies_with_its_lifeline(tmp_path: Path) -> None:
    """Cutting the line kills the processes of the group and their children too."""
    lifeline = Lifeline()
    process = Process("sleeper", sleeper(tmp_path), tmp_path, lifeline.group)
    lifeline.cut()
    process.stop()
    assert not alive(process.pid, tmp_path)


def test_a_group_dies_when_its_starter_is_killed(tmp_path: Path) -> None:
    """Not even SIGKILL, which nobody can catch, leaves a control plane running."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from webhook.sandbox.processes import Lifeline, Process\n"
        "directory = Path(sys.argv[1]); line = Lifeline()\n"
        "command = ['/usr/bin/tail', '-f', str(directory / 'empty')]\n"
        "print(Process('sleeper', command, directory, line.group).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    (tmp_path / "empty").touch()
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert alive(pid, tmp_path)
        starter.kill()
    eventually("the process ends", lambda: not alive(pid, tmp_path))


# Ports for two processes that each take twenty: they meet all the time, and some may be in use.
WITHIN = range(21_000, 21_060)
PROGRAM = f"""
import sys
from webhook.sandbox import processes
from webhook.sandbox.processes import free_ports
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
    monkeypatch.setattr(processes, "_RANGE", stated)
    within: list[range] = []
    monkeypatch.setattr(processes, "_take", within.append)
    free_ports(["a"])
    assert within == [range(20_000, end)]


def test_a_port_with_a_listener_is_not_free() -> None:
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
