"""Processes that end when they should, and only then."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.eventually import eventually
from webhook.errors import SandboxError
from webhook.sandbox.processes import Lifeline, Process, alive, end_recorded, recorded
from webhook.sandbox.readiness import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def sleeper(directory: Path) -> list[str]:
    """A command that waits for ever, and names the directory in its arguments."""
    (directory / "empty").touch()
    return ["/usr/bin/tail", "-f", str(directory / "empty")]


def gone(pid: int, directory: Path) -> bool:
    """Whether the process ends, for which it has a minute."""
    eventually("the process ends", lambda: not alive(pid, directory))
    return True


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


def test_a_process_that_exits_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
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
    assert gone(pid, tmp_path)
