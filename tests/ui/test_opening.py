"""The way of the token from the command to the browser: no other account of the machine has it."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.eventually import eventually
from tests.ui.opened_pages import Opened, opened
from tests.ui.served_pages import page
from tests.wording import mentions
from webhook.ui import opening


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's home folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def command(tmp_path: Path, home: Path) -> Iterator[Opened]:
    """The command, whose browser waits."""
    with opened(tmp_path, home) as found:
        yield found


def arguments_of_all() -> bytes:
    """The arguments of all processes, which each account of the machine may read."""
    found = b""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += each.read_bytes()
        except OSError:
            continue
    return found


def test_no_process_has_the_token_among_its_arguments(command: Opened) -> None:
    """The browser gets the name of a file that only its user may read."""
    assert len(command.token) >= 32
    assert command.given.startswith("file://")
    assert command.given.encode() in arguments_of_all()
    assert command.token.encode() not in arguments_of_all()
    assert stat.S_IMODE(command.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(command.file.parent.stat().st_mode) == 0o700
    action, fields = command.form()
    assert fields == {"token": command.token}
    assert command.token not in action


def test_the_form_of_the_file_leads_in_and_the_file_is_gone_then(
    command: Opened, tmp_path: Path, home: Path
) -> None:
    """The token is in no address; the cookie is for no script and no other site."""
    action, fields = command.form()
    answer = command.post(urlsplit(action).path, urlencode(fields))
    assert answer.status == 200
    mentions(answer.headers["set-cookie"], "HttpOnly", "SameSite=strict")
    # The page asks for the next one itself: after a redirect the cookie would not be sent.
    mentions(answer.text, 'http-equiv="refresh"', "url=/")
    assert command.token not in answer.text
    assert answer.headers["referrer-policy"] == "same-origin"
    assert list(home.iterdir()) == []
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert command.page.ask("GET", "/playground", cookie=cookie).status == 200
    assert command.token.encode() not in arguments_of_all()
    (tmp_path / "done").touch()
    command.process.terminate()
    assert command.process.stderr is not None
    assert command.token not in command.process.stderr.read()


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        ("token=wrong", {}, 401),
        ("", {}, 401),
        ("token={token}&x=" + "x" * 2000, {}, 401),
        ("token={token}", {"host": "evil.example"}, 403),
    ],
    ids=("another token", "none", "too long", "another host"),
)
def test_a_form_without_the_token_or_for_another_host_leads_nowhere(
    command: Opened, body: str, headers: dict[str, str], expected: int
) -> None:
    """A page of another site sends what it likes; the file stays for its browser."""
    answer = command.post("/enter", body.replace("{token}", command.token), **headers)
    assert answer.status == expected
    assert "set-cookie" not in answer.headers
    assert command.file.exists()


def test_a_form_needs_the_token_itself_not_a_cookie(command: Opened) -> None:
    """No other form of another site is taken."""
    cookie = f"fairlead-ui-{command.page.port}={command.token}"
    assert command.post("/enter", "", cookie=cookie).status == 401
    assert command.post("/playground/answer", "", cookie=cookie).status == 403


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_file_is_gone_at_the_end_though_no_browser_came(
    command: Opened, home: Path, ending: signal.Signals
) -> None:
    """The end of the terminal is an end, too."""
    assert command.page.ask("GET", "/playground").status == 401
    assert command.file.exists()
    command.process.send_signal(ending)
    command.process.wait(timeout=30)
    assert list(home.iterdir()) == []


def test_the_file_is_where_a_browser_in_a_snap_reads_it(command: Opened, home: Path) -> None:
    """Not in /tmp, and in no hidden folder."""
    below = command.file.relative_to(home)
    assert not any(part.startswith(".") for part in below.parts)


def test_without_a_home_folder_the_file_is_among_the_temporary_ones(tmp_path: Path) -> None:
    with opened(tmp_path, tmp_path / "nothing") as command:
        assert command.file.is_relative_to(tmp_path / "tmp")


def test_without_a_token_the_browser_gets_the_address(tmp_path: Path, home: Path) -> None:
    with opened(tmp_path, home, "--no-token") as command:
        assert command.given == command.page.address
        assert "?" not in command.given
        assert list(home.iterdir()) == []


def test_the_printed_address_leads_in_too(home: Path) -> None:
    """Where the browser is on another machine; no file is written, and no argument has it."""
    with page("--port", "0", env={**os.environ, "HOME": str(home)}) as found:
        token = urlsplit(found.address).query.removeprefix("token=")
        assert token.encode() not in arguments_of_all()
        answer = found.enter()
        assert (answer.status, answer.headers["location"]) == (303, "/")
        assert token not in answer.text
        assert list(home.iterdir()) == []


def test_no_browser_is_opened_in_wsl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is a program of Windows, which reads no such file: the printed address is clicked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(
        "platform.uname", lambda: type("U", (), {"release": "5.15.90.1-microsoft-standard-WSL2"})
    )
    started: list[str] = []
    monkeypatch.setattr("webbrowser.open", started.append)
    with opening.opened_pages("http://127.0.0.1:1/", "secret") as entered:
        entered()
        assert list(tmp_path.iterdir()) == []
    with opening.opened_pages("http://127.0.0.1:1/", ""):
        eventually("it is opened", lambda: started == ["http://127.0.0.1:1/"])
