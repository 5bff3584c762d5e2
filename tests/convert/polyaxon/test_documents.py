"""Whatever is in a file, it is a Polyaxonfile or it is said what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.fast_yaml import load_all_yaml, load_yaml
from tests.wording import Wording, mentions
from webhook.convert.polyaxon.convert import ConversionOptions, convert

CASES = sorted((Path(__file__).parents[2] / "golden" / "polyaxon").glob("*.yaml"))
WORDS = sorted(
    {
        word
        for path in CASES
        for text in load_yaml(path.read_text())["files"].values()
        for word in text.replace(":", " ").replace("{", " ").replace(",", " ").split()
        if word.isidentifier()
    }
)
LEAVES = st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(WORDS) | st.text()
TREES = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), below, max_size=4)
    ),
    max_leaves=12,
)


def test_invalid_bytes_have_a_place_too(wording: Wording) -> None:
    """And a file that nobody wrote by hand is refused as a whole."""
    (found,) = convert({"f.yml": b"a: \xff"}).findings
    mentions(str(found), "f.yml:1:4: ", "0xff is not UTF-8")
    (found,) = convert({"f.yml": b" " * (2**20 + 1)}).findings
    mentions(str(found), "f.yml", str(2**20 + 1), f"limit is {2**20}")
    wording(str(found))


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(CASES), st.data())
def test_a_file_with_anything_in_any_place_is_converted_or_refused(
    path: Path, data: st.DataObject
) -> None:
    """Never an exception; no Run beside an error, and always a place."""
    files: dict[str, str] = load_yaml(path.read_text())["files"]
    name = data.draw(st.sampled_from(sorted(files)))
    document = next(iter(load_all_yaml(files[name])))
    where: Any = document
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(where[key], dict | list) or data.draw(st.integers(0, 2)) == 0:
            where[key] = data.draw(TREES)
            break
        where = where[key]
    changed = {**files, name: json.dumps(document, default=str)}
    result = convert(
        {key: text.encode() for key, text in changed.items()}, ConversionOptions(image="i")
    )
    assert (result.run is None) == bool(result.errors)
    assert (result.document is None) == bool(result.errors)
    for finding in result.findings:
        assert finding.line >= 1
        assert finding.column >= 1


@settings(max_examples=examples(100), deadline=None)
@given(st.text() | st.binary())
def test_whatever_the_bytes_are_there_is_an_answer(content: str | bytes) -> None:
    """A Run or an error."""
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    result = convert({"f.yml": raw})
    assert (result.run is None) == bool(result.errors)
