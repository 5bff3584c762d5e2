"""What DeepSpeed's launcher makes of the hostfile and the variables.

Written from `_parse_hostfile`, `parse_inclusion_exclusion` and `main` of DeepSpeed 0.19.6
(`deepspeed/launcher/runner.py`), and pdsh(1). That runner, with the options of the guide, took the
hostfile and the variables of three workers, and of a launcher with two; pdsh 2.34, with a script in
the place of ssh, called each host with the options given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.frameworks.resolvers.mpi import ssh
from tests.frameworks.resolvers.view import Env, View, opened
from webhook.frameworks.framework import FILES


def resolve(env: Env, files: Mapping[str, str]) -> View:
    """The hosts and the master; of workers that start themselves, the place among the hosts."""
    slots = hostfile(opened(f"{FILES}/hostfile", files))
    master = env["MASTER_ADDR"], int(env["MASTER_PORT"])
    assert master[0] == next(iter(slots))
    if "PDSH_SSH_ARGS_APPEND" in env:
        flag, config = env["PDSH_SSH_ARGS_APPEND"].split()
        assert flag == "-F"
        ssh(opened(config, files))
    cluster, hosts = (tuple(slots.items()), master), frozenset(slots)
    if "NODE_RANK" not in env:
        return View(cluster, None, hosts)
    rank = int(env["NODE_RANK"])
    assert 0 <= rank < len(slots)
    return View(cluster, rank, hosts, len(slots))


def hostfile(text: str) -> dict[str, int]:
    """Each host with its slots, in order."""
    found = [re.fullmatch(r"(\S+)\s+slots=(\d+)", line) for line in text.splitlines()]
    slots = {match[1]: int(match[2]) for match in found if match is not None}
    assert len(slots) == len(found) > 0
    assert all(slots.values())
    return slots
