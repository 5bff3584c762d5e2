"""Open the pages in a browser, without their token in any command line.

Each account of a machine reads the arguments of all processes (proc(5)), so the browser gets the
name of a file that only its user may read. The file's form sends the token in the body of a
request: so it is in no address, no history and no Referer either. A code in the address that ends
with its first use would not do: whoever watches the arguments may be first.
"""

from __future__ import annotations

import html
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import webbrowser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.ui.guard import ENTRY, PARAMETER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FORM: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Fairlead</title>
<form method="post" action="{action}">
<input type="hidden" name="{name}" value="{token}">
<button>Open the pages of Fairlead</button>
</form>
<script>document.forms[0].submit()</script>
</html>
"""


@contextmanager
def opened_pages(address: str, token: str) -> Iterator[Callable[[], None]]:
    """Open the pages at `address`, such as http://127.0.0.1:8000/, in the user's browser.

    Yields a function that ends the way in by the file; so does the end of the block. Without a
    token the browser gets the address itself. Nothing is opened where no file can be written, nor
    in WSL, whose browser is a program of Windows and reads no such file.
    """
    folder = _make_folder() if token and not _is_wsl() else None
    if folder is None:
        if not token:
            _open(address)
        yield lambda: None
        return

    def remove() -> None:
        shutil.rmtree(folder, ignore_errors=True)

    # These would end the process at once, and the file would stay.
    for signal_number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(signal_number) is signal.SIG_DFL:
            signal.signal(signal_number, lambda number, _: sys.exit(128 + number))
    try:
        _open(_write_form(folder, address, token).as_uri())
        yield remove
    finally:
        remove()


def _make_folder() -> Path | None:
    """Return a new folder of mode 0700.

    It is visible in the home folder if possible: browsers in snaps, as on Ubuntu, read neither
    hidden folders nor /tmp.
    """
    for parent in (Path.home(), Path(tempfile.gettempdir())):
        try:
            return Path(tempfile.mkdtemp(prefix="fairlead-ui-", dir=parent))
        except OSError:
            continue
    return None


def _write_form(folder: Path, address: str, token: str) -> Path:
    """Write the page that sends the token, of mode 0600 from its beginning."""
    file = folder / "open.html"
    values = {"action": address.rstrip("/") + ENTRY, "name": PARAMETER, "token": token}
    text = _FORM.format(**{key: html.escape(value) for key, value in values.items()})
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)
    return file


def _open(address: str) -> None:
    # A command of $BROWSER is waited for until it ends, and it asks the pages before.
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _is_wsl() -> bool:
    return "microsoft" in platform.uname().release.lower()
