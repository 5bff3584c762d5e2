"""The volume at /dev/shm that Polyaxon gives to every pod.

Read in polyaxon (`get_shm_volumes` of 0.x, `plugins.shm` since 1.1): without it there are 64 MiB,
which is too little for the data loaders of PyTorch. Its memory counts as the container's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft

NAME: Final = "shm"
PATH: Final = "/dev/shm"  # noqa: S108  the path inside of the container

VOLUME: Final[Draft] = {"name": NAME, "emptyDir": {"medium": "Memory"}}
MOUNT: Final[Draft] = {"name": NAME, "mountPath": PATH}
