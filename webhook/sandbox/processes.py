"""Start and end the processes of a control plane, on free ports of 127.0.0.1."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.errors import SandboxError
from webhook.sandbox.cache_folder import cache_directory, lock_now, writing_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PROC: Final = Path("/proc/self/cwd")  # not on a macOS
# A control plane lives for minutes. Collecting garbage less often saves a third of the API server's
# processor time; the limit bounds the memory that this takes.
_GO: Final = {"GOGC": "400", "GOMEMLIMIT": "800MiB"}
# Below the ephemeral ports, which the kernel gives to connections and for port 0: one of those
# could be taken before a component listens on it. If an admin made nearly all ports ephemeral,
# there are none below, and that may happen.
_LOWEST: Final = 20_000
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_END: Final = 32_768


class Lifeline:
    """A process group that ends when this process ends, also when it is killed.

    A shell leads the group and reads from a pipe whose other end only this process has. When this
    process ends, the shell reads the end of file and kills the group. That works on every Unix and
    from every thread, unlike prctl(PR_SET_PDEATHSIG).
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
        """Kill all processes of the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
        self._shell.wait()
        if self._shell.stdin:
            self._shell.stdin.close()


class Process:
    """A process of the sandbox, whose output goes to <directory>/logs/<name>.log.

    Its id is written to <directory>/pids/<name>, so that another command can end it. With a
    `group` it belongs to that process group; without one it leads its own session, and outlives
    this process. Its working directory and its arguments name the directory, so that `alive` can
    distinguish it from another process with the same id. `environment` goes before this process'
    own.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str | Path],
        directory: Path,
        group: int | None = None,
        environment: Mapping[str, str] | None = None,
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
                # Keys that a client unpacks from a kubeconfig are removed with the directory, even
                # if the process is killed.
                env={**_GO, **os.environ, "TMPDIR": str(directory), **(environment or {})},
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
            raise SandboxError(f"{self.name} exited with code {code}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Return the last 15 lines of its log; long lines are cut."""
        text = self.log.read_text(errors="replace")
        return "\n".join(line[:500] for line in text.splitlines()[-15:])

    def stop(self) -> None:
        """Kill it. Its state need not be saved."""
        if self._popen.poll() is None:
            _kill(self.pid)
        self._popen.wait()
        self._pid_file.unlink(missing_ok=True)


def recorded(directory: Path) -> dict[str, int]:
    """Name and process id of every process that was started for the directory."""
    pid_by_name = {}
    for path in sorted((directory / "pids").glob("*")):
        with contextlib.suppress(ValueError, OSError):
            pid_by_name[path.name] = int(path.read_text())
    return pid_by_name


def alive(pid: int, directory: Path) -> bool:
    """Return whether the process runs, and was started for the directory."""
    if _PROC.exists():
        # Not its command line, which is empty for a moment while a process starts.
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == directory.resolve()
        except OSError:
            return False
    command = ["/bin/ps", "-o", "args=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return str(directory) in shown.stdout


def end_recorded(directory: Path) -> None:
    """Kill every process recorded for the directory, and wait until all have ended.

    Raises SandboxError if one still runs after ten seconds.
    """
    mine = {name: pid for name, pid in recorded(directory).items() if alive(pid, directory)}
    for pid in mine.values():
        _kill(pid)
    deadline = time.monotonic() + 10
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


def free_ports(names: Sequence[str], within: range | None = None) -> dict[str, int]:
    """Return a different free port of 127.0.0.1 for each name.

    While this process runs, no other one with the same cache gets them by this function. Raises
    SandboxError if none is left, or the cache cannot be written.
    """
    return {name: _take(within or range(_LOWEST, _end())) for name in names}


def _take(ports: range) -> int:
    folder = cache_directory(os.environ) / "ports"
    with writing_cache():
        folder.mkdir(parents=True, exist_ok=True)
    start = secrets.randbelow(len(ports))
    for number in range(len(ports)):
        port = ports[(start + number) % len(ports)]
        # The locked file stays open: the kernel unlocks it when this process ends.
        with writing_cache():
            file = os.open(folder / str(port), os.O_CREAT | os.O_WRONLY, 0o600)
        if lock_now(file) and _is_free(port):
            return port
        os.close(file)
    raise SandboxError(f"no port from {ports[0]} to {ports[-1]} is free on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _end() -> int:
    try:
        end = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _DEFAULT_END
    return end if end > _LOWEST + 1000 else _DEFAULT_END
