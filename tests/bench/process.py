"""What a process of this machine has used, by /proc."""

from __future__ import annotations

import os
from pathlib import Path


def resident_mib(pid: int) -> float:
    """The memory that is resident now, in MiB."""
    return _status_mib(pid, "VmRSS:")


def highest_mib(pid: int) -> float:
    """The most memory that was resident at once so far, in MiB."""
    return _status_mib(pid, "VmHWM:")


def _status_mib(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(pid)


def cpu_ms(pid: int) -> float:
    """The time on processors so far, in milliseconds, to 10 ms."""
    # The command's name, in parentheses, may hold blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
