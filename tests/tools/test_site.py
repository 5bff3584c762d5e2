"""The site has every page once, in the order of docs/README.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tools.site import MOVED, nav, pages

# Pages of the repository, which others lead to.
BESIDE = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}


def leaves(tree: Any) -> Iterator[str]:
    """The pages of a navigation."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        yield from (each for part in tree.values() for each in leaves(part))
    else:
        yield from (each for part in tree for each in leaves(part))


def test_every_page_is_in_the_navigation_once() -> None:
    """Also those of decisions; none that is not there."""
    found = Counter(leaves(nav()))
    assert [page for page, count in found.items() if count > 1] == []
    made = {str(MOVED.get(page, page)) for page in pages()}
    assert made - found.keys() <= BESIDE
    assert found.keys() - made == {"index.md", "docs/decisions/index.md"}


def test_the_order_is_that_of_a_reader_and_tasks_are_grouped_by_role() -> None:
    """As docs/README.md has them."""
    sections = {title: part for each in nav() for title, part in each.items()}
    assert list(sections) == [
        *("Home", "Try it", "Install", "Tasks", "Concepts", "Reference"),
        *("Troubleshooting", "Contribute", "Decisions", "All pages"),
    ]
    groups = [title.partition(",")[0] for each in sections["Tasks"] for title in each]
    assert groups[:3] == ["Admin", "ML engineer", "Platform engineer"]
