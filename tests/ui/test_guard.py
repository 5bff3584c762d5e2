"""Only who has the printed address sees the page, and no other site reaches it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.ui.served_pages import Page, page
from tests.wording import mentions


@pytest.fixture(scope="module")
def served() -> Iterator[Page]:
    """The page, entered once."""
    with page() as found:
        found.enter()
        yield found


def test_the_printed_address_sets_a_cookie_and_leaves_the_token_out(served: Page) -> None:
    """So that the token is in no history, and in no link that is sent on."""
    answer = served.enter()
    assert answer.status == 303
    assert answer.headers["location"] == "/"
    mentions(
        answer.headers["set-cookie"], f"fairlead-ui-{served.port}=", "HttpOnly", "SameSite=strict"
    )


@pytest.mark.parametrize(
    "address",
    ["/?token=wrong", "/playground", "/playground/answer", "/static/page.css", "//evil.example/"],
)
def test_without_the_token_there_is_nothing(served: Page, address: str) -> None:
    """Also with the token of another session: the cure is said."""
    for cookie in (f"fairlead-ui-{served.port}=stale", "", "x=y"):
        answer = served.ask("GET", address, cookie=cookie)
        assert answer.status == 401
        mentions(answer.text, "fairlead ui")


def test_the_way_in_leads_to_no_other_host(served: Page) -> None:
    """An address that begins with two slashes names a host."""
    token = served.address.partition("?")[2]
    answer = served.ask("GET", f"//evil.example/a?b=c&{token}", cookie="")
    assert (answer.status, answer.headers["location"]) == (303, "/evil.example/a?b=c")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:{port}"},
        {"host": "evil.localhost:{port}"},
        {"host": "evil.{name}:{port}"},
        {"host": "{name}.evil.example:{port}"},
        {"host": "[::1"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1:{port}"},
        {"origin": "http://{name}:1"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
    ],
)
def test_a_request_of_another_site_is_refused(served: Page, headers: dict[str, str]) -> None:
    """With the right cookie: a name that another site leads here, or a page of another origin."""
    known = {"{port}": str(served.port), "{name}": served.name}
    sent = dict(headers)
    for key, value in known.items():
        sent = {header: text.replace(key, value) for header, text in sent.items()}
    answer = served.ask("GET", "/playground", headers=sent)
    assert answer.status == 403
    assert "policies" not in answer.text
    # Whoever asks for another name must not learn this one.
    assert served.name not in answer.text
    assert served.name not in str(answer.headers)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_the_names_of_loopback_are_its_own(served: Page, host: str) -> None:
    """Whatever the port, which kubectl port-forward chooses, and where a browser finds no other."""
    name = host.replace("{port}", str(served.port))
    headers = {"host": name, "origin": f"http://{name}"}
    answer = served.ask("GET", "/playground", headers=headers)
    assert answer.status == 200


@pytest.mark.parametrize("address", ["/playground", "/static/page.css", "/schema.json", "/nothing"])
def test_no_answer_may_run_or_load_what_is_not_its_own(served: Page, address: str) -> None:
    """Every answer, also that of an error, has the strict policy."""
    headers = served.ask("GET", address).headers
    policy = headers["content-security-policy"]
    mentions(policy, "default-src 'none'", "script-src 'self'", "frame-ancestors 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


def test_the_page_has_no_inline_script_and_no_inline_style(served: Page) -> None:
    """Which the policy would not run."""
    text = served.ask("GET", "/playground").text
    assert text.count("<script") == text.count("<script src=")
    assert "<style" not in text
    assert " style=" not in text
    assert " on" not in text.replace(" on-demand", "").replace(" on ", "").partition("<main")[0]


def test_each_command_has_a_name_of_its_own_that_nobody_guesses(served: Page) -> None:
    """Browsers send a cookie to every port of its host, and this host has one."""
    with page() as other:
        assert other.name != served.name
        for each in (other.name, served.name):
            label, _, rest = each.partition(".")
            assert rest == "localhost"
            assert len(label.removeprefix("fairlead-")) >= 20
    assert "domain" not in served.enter().headers["set-cookie"].lower()


def test_without_a_token_the_address_is_that_of_loopback() -> None:
    """There is no cookie, and `kubectl port-forward` leads there by any of its names."""
    with page("--no-token") as found:
        assert found.name == "127.0.0.1"
        for host in ("127.0.0.1:1", "localhost:8765", "[::1]:1"):
            assert found.ask("GET", "/playground", headers={"host": host}).status == 200
        evil = found.ask("GET", "/playground", headers={"host": "evil.localhost"})
        assert evil.status == 403


def test_files_are_kept_under_their_hash_and_pages_are_not(served: Page) -> None:
    """A file of another hash is another file; what answers questions is stored nowhere."""
    text = served.ask("GET", "/playground").text
    (address,) = re.findall(r'href="(/static/page.css[^"]*)"', text)
    compressed = {"accept-encoding": "gzip"}
    kept = served.ask("HEAD", address, headers=compressed)
    mentions(kept.headers["cache-control"], "immutable", "private")
    assert kept.headers["content-encoding"] == "gzip"
    for path in ("/static/page.css", "/static/page.css?other", "/playground", "/schema.json"):
        assert served.ask("GET", path).headers["cache-control"] == "no-store"
    assert served.ask("GET", "/static/nothing.js").status == 404
    assert served.ask("GET", "/pieces").status == 404
