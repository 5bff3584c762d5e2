"""Starts one control plane's processes, and ends them for certain."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROC: Final = Path("/proc/self/cwd")  # not on a macOS


class Lifeline:
    """A process group that dies when this process does, however it dies.

    A shell leads the group and reads from a pipe whose other end only we hold: when we are gone,
    killed even, it reads the end of file and kills the whole group. That works on every Unix and
    from every thread, which prctl(PR_SET_PDEATHSIG) does not.
    """

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", "read -r _; kill -KILL 0"], stdin=subprocess.PIPE, process_group=0
        )

    @property
    def group(self) -> int:
        """The id of the process group, for Popen's process_group."""
        return self._shell.pid

    def cut(self) -> None:
        """Kill every process of the group that is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
        self._shell.wait()
        if self._shell.stdin:
            self._shell.stdin.close()


class Process:
    """A process of the sandbox, whose output goes to <directory>/logs/<name>.log.

    Its id is written to <directory>/pids/<name>, so that another command can end it. With a
    `group` it belongs to that process group; without, it leads a session of its own and outlives
    us. It works in the directory and has it in its arguments, by which `alive` tells it from a
    stranger that was given the same id.
    """

    def __init__(
        self, name: str, arguments: Sequence[str | Path], directory: Path, group: int | None = None
    ) -> None:
        self.name = name
        self.log = directory / "logs" / f"{name}.log"
        self._pid_file = directory / "pids" / name
        for path in (self.log, self._pid_file):
            path.parent.mkdir(exist_ok=True)
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(  # noqa: S603
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=directory,
                # Keys that a client unpacks from a kubeconfig go when the directory goes, even if
                # the process is killed before it can remove them.
                env={**os.environ, "TMPDIR": str(directory)},
                start_new_session=group is None,
                process_group=group,
            )
        self._pid_file.write_text(f"{self._popen.pid}\n")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it lives; negative is the signal that killed it."""
        return self._popen.poll()

    def check(self) -> None:
        """Raise SandboxError with the end of its log if it has exited."""
        code = self._popen.poll()
        if code is not None:
            raise SandboxError(f"{self.name} exited with code {code}:\n{self.last_words()}")

    def last_words(self, lines: int = 15) -> str:
        """The end of its log, of long lines their beginning."""
        text = self.log.read_text(errors="replace")
        return "\n".join(line[:500] for line in text.splitlines()[-lines:])

    def stop(self) -> None:
        """Kill it. There is nothing to save: all its state is thrown away with it."""
        if self._popen.poll() is None:
            _kill(self.pid)
        self._popen.wait()
        self._pid_file.unlink(missing_ok=True)


def recorded(directory: Path) -> dict[str, int]:
    """Name and process id of every process that was started for the directory."""
    found = {}
    for path in sorted((directory / "pids").glob("*")):
        with contextlib.suppress(ValueError, OSError):
            found[path.name] = int(path.read_text())
    return found


def alive(pid: int, directory: Path) -> bool:
    """Whether the process lives and is one that was started for the directory."""
    if _PROC.exists():
        # Not its command line, which is empty for a moment while a process starts.
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == directory.resolve()
        except OSError:
            return False
    command = ["/bin/ps", "-o", "args=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return str(directory) in shown.stdout


def end_recorded(directory: Path, patience: float = 10) -> None:
    """Kill every process recorded for the directory, and wait until all are gone.

    Raises SandboxError if one is still there after `patience` seconds.
    """
    mine = {name: pid for name, pid in recorded(directory).items() if alive(pid, directory)}
    for pid in mine.values():
        _kill(pid)
    deadline = time.monotonic() + patience
    while left := [f"{name} ({pid})" for name, pid in mine.items() if alive(pid, directory)]:
        if time.monotonic() > deadline:
            raise SandboxError(f"these processes do not end: {', '.join(left)}")
        time.sleep(0.02)


def _kill(pid: int) -> None:
    """Kill the process, and its children too where it leads a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)
