"""Paths of the API server: no name leads anywhere but to one object of its own collection."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from webhook.api_paths import (
    NAMESPACES,
    ApiPath,
    CollectionPath,
    ObjectPath,
    check_name,
    check_namespace,
)
from webhook.errors import ClusterError, InvalidName

# What changes the meaning of an address, among what a name may have.
AWKWARD = ("", ".", "..", "/", "%", "%2e%2e", "%2F", "?", "#", ";", "\\", "&", "@", ":", "\n", " ")
PIECES = st.one_of(
    st.sampled_from((*AWKWARD, "a", "run-1", "a.b", "A", "_", "-", "ä", "٣", "／", "\x00", "\x7f")),
    st.text(max_size=5),
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
HOST = "https://cluster"


def leads_to(path: str) -> list[str]:
    """The parts of the path that a client asks for; it reads the address as others do."""
    url = URL(HOST + path)
    assert (url.host, url.raw_query_string, url.raw_fragment) == ("cluster", "", "")
    assert urlsplit(HOST + path).path == url.raw_path == path
    return url.raw_path.split("/")[1:]


@given(TEXTS)
@example("")
@example("r4/../r5")
@example("r4?x=1")
def test_a_name_leads_to_its_collection_and_one_part_more_or_nowhere(name: str) -> None:
    """A path has the name as its last part, unchanged, or is not made."""
    runs = CollectionPath("fairlead.dev/v1alpha1", "runs", "lab")
    try:
        path = runs.path_of(name)
    except InvalidName:
        return
    assert leads_to(path) == [*leads_to(runs), name]
    assert leads_to(path.subresource("log")) == [*leads_to(runs), name, "log"]


@given(TEXTS)
@example("x/y")
@example("lab/runs/r4?")
def test_a_namespace_is_one_part_or_nothing(namespace: str) -> None:
    try:
        path = CollectionPath("v1", "pods", namespace)
    except InvalidName:
        return
    assert leads_to(path) == ["api", "v1", "namespaces", namespace, "pods"]


@given(TEXTS, TEXTS)
@example("v1/namespaces/default", "pods")
@example("batch/v1/x", "jobs")
@example("batch/", "jobs")
def test_an_api_version_and_a_resource_are_the_parts_that_they_are(
    version: str, resource: str
) -> None:
    """Pods refer to owners by an apiVersion that their authors write."""
    try:
        path = CollectionPath(version, resource)
    except InvalidName:
        return
    group, _, rest = version.rpartition("/")
    assert leads_to(path) == [*(["apis", group] if group else ["api"]), rest, resource]


@given(st.lists(TEXTS, min_size=1, max_size=4))
@example(["pods", "web-0:8081", "proxy"])
def test_a_path_has_the_parts_that_it_is_made_of(parts: list[str]) -> None:
    try:
        path = ApiPath(*parts)
    except InvalidName:
        return
    assert leads_to(path) == parts


@pytest.mark.parametrize("name", ["train-1", "a.b-c.d", "0", "a" * 253])
def test_every_name_that_an_object_may_have_makes_a_path(name: str) -> None:
    assert NAMESPACES.path_of(name) == f"/api/v1/namespaces/{name}"


def test_an_empty_namespace_is_not_all_namespaces() -> None:
    """Only None is: a variable that is not set must not widen what is asked for."""
    assert CollectionPath("v1", "pods", None) == "/api/v1/pods"
    with pytest.raises(InvalidName, match="a variable that is not set"):
        CollectionPath("v1", "pods", "")


def test_only_a_collection_makes_the_path_of_an_object() -> None:
    with pytest.raises(TypeError):
        ObjectPath()
    assert not isinstance(NAMESPACES, ObjectPath)
    assert not isinstance(ApiPath("api", "v1", "namespaces", "a"), ObjectPath)


def test_what_is_added_to_a_path_is_no_path() -> None:
    """So the client refuses it."""
    path = NAMESPACES.path_of("a")
    for made in (f"{path}/b", path + "/b", path.removesuffix("a"), path[:5], str(path)):
        assert not isinstance(made, ApiPath)


def test_an_impossible_name_is_that_of_an_object_which_is_not_there() -> None:
    """Who reads the object of a name that others wrote handles it as absent."""
    with pytest.raises(ClusterError) as caught:
        NAMESPACES.path_of("a/../b")
    assert caught.value.status == 404


@pytest.mark.parametrize(
    ("check", "name", "message"),
    [
        (
            check_name,
            "",
            (
                "name '': it is empty, as of a variable that is not set; want 1 to 253 of a-z, "
                "0-9, '-' and '.'"
            ),
        ),
        (check_name, "r4?x=1", "name 'r4?x=1': want 1 to 253 of a-z, 0-9, '-' and '.'"),
        (check_namespace, "x/y", "namespace 'x/y': want 1 to 63 of a-z, 0-9 and '-'"),
        (check_namespace, "\x1b[2J", "namespace '\\x1b[2J': want 1 to 63 of a-z, 0-9 and '-'"),
    ],
)
def test_a_refused_name_is_shown_with_what_is_allowed(
    check: object, name: str, message: str
) -> None:
    """Without its control characters, which could change the screen."""
    assert callable(check)
    with pytest.raises(InvalidName) as caught:
        check(name)
    assert str(caught.value) == message


def test_a_refused_name_is_shown_by_its_beginning() -> None:
    """A pod's author may write a megabyte."""
    with pytest.raises(InvalidName) as caught:
        check_name("/" * 10**6)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", [None, 5, b"a", ["a"]])
def test_a_name_that_is_no_text_is_refused_as_others_are(name: Any) -> None:
    """A program hands over what os.environ.get has."""
    with pytest.raises(InvalidName):
        NAMESPACES.path_of(name)
    with pytest.raises(InvalidName):
        CollectionPath("v1", "pods", name if name is not None else 0)  # type: ignore[arg-type]
