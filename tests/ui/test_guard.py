"""Only who has the printed address sees the page, and no other site reaches it."""

from __future__ import annotations

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
        {"host": "[::1"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
    ],
)
def test_a_request_of_another_site_is_refused(served: Page, headers: dict[str, str]) -> None:
    """With the right cookie: a name that another site leads here, or a page of another origin."""
    sent = {key: value.replace("{port}", str(served.port)) for key, value in headers.items()}
    answer = served.ask("GET", "/playground", headers=sent)
    assert answer.status == 403
    assert "policies" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_the_names_of_loopback_are_its_own(served: Page, host: str) -> None:
    """Whatever the port, which kubectl port-forward chooses."""
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
