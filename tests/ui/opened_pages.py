"""`fairlead ui` with a browser of the test's own, which gets what the command gives a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.eventually import eventually
from tests.ui.served_pages import PROGRAM, Answer, Page

# A browser: it notes what it was given, and waits until it is told to go on.
BROWSER = """
import os, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
(folder / "given.part").write_text(sys.argv[2])
(folder / "given.part").rename(folder / "given")
while not (folder / "done").exists():
    time.sleep(0.05)
"""


# What a browser sends with the form of a page in a file.
CROSS_SITE = {"origin": "null", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}


class Opened(NamedTuple):
    """The running command, and the address that its browser was given."""

    process: subprocess.Popen[str]
    page: Page
    given: str

    @property
    def token(self) -> str:
        return urlsplit(self.page.address).query.removeprefix("token=")

    @property
    def file(self) -> Path:
        return Path(urlsplit(self.given).path)

    def form(self) -> tuple[str, dict[str, str]]:
        """The address and the fields of the form in the file."""
        text = self.file.read_text()
        action = re.search(r'action="([^"]*)"', text)
        field = re.search(r'name="([^"]*)" value="([^"]*)"', text)
        assert action
        assert field
        return action[1], {field[1]: field[2]}

    def post(self, path: str, body: str, **headers: str) -> Answer:
        """Send a form, as a page in a file does."""
        kind = {"content-type": "application/x-www-form-urlencoded"}
        sent = {**kind, **CROSS_SITE, **headers}
        return self.page.ask("POST", path, body.encode(), headers=sent)


# Whoever started the tests by nohup ignores the signal, and so would the command.
HANGING_UP = (
    *PROGRAM[:-1],
    f"import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); {PROGRAM[-1]}",
)


@contextmanager
def opened(folder: Path, home: Path, *options: str) -> Iterator[Opened]:
    """Run the command with a browser of our own until the block ends."""
    script, temporary = folder / "browser.py", folder / "tmp"
    script.write_text(BROWSER)
    temporary.mkdir()
    browser = f"{sys.executable} {script} {folder} %s"
    env = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary), "BROWSER": browser}
    with subprocess.Popen(
        [*HANGING_UP, "ui", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as process:
        try:
            assert process.stdout is not None
            page = Page(process.stdout.readline().strip())
            eventually("the browser is there", (folder / "given").exists)
            yield Opened(process, page, (folder / "given").read_text())
        finally:
            (folder / "done").touch()
            process.terminate()
