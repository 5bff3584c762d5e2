"""The files of the pages, under addresses that change with their content."""

from __future__ import annotations

import hashlib
import mimetypes
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

_HASH_LENGTH: Final = 12
# What has its hash in its address never changes there.
_FOR_EVER: Final = "private, max-age=31536000, immutable"


class Assets:
    """The files of a folder, which are read once."""

    def __init__(self, folder: Path) -> None:
        self._files = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        self._hashes = {
            name: hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]
            for name, content in self._files.items()
        }

    def address(self, name: str) -> str:
        """Return the address of a file, with the hash of its content."""
        return f"/static/{name}?{self._hashes[name]}"

    async def serve(self, request: Request) -> Response:
        """Return a file; browsers keep it if its address has its hash."""
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("no such file\n", HTTPStatus.NOT_FOUND)
        kept = {"cache-control": _FOR_EVER} if request.url.query == self._hashes[name] else {}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(self._files[name], headers=kept, media_type=kind)
