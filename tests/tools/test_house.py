"""The figures of a package, counted by hand."""

from __future__ import annotations

from pathlib import Path

from tools.house import LIMITS, broken_limits, figures

FILES = {
    "__init__.py": '"""The package."""\n',
    "top.py": "from pack import low\nfrom pack.middle import work\n"
    "\n\ndef main():\n    work(low.N)\n",
    "middle.py": "import json\nfrom pack.low import (\n    N,\n)\n"
    "\n\ndef work(n):\n    return n + N\n",
    "low.py": "N = 1\n",
}


def test_figures_are_those_of_the_files(tmp_path: Path) -> None:
    """`low` has two importers, `middle` one, and an import of two lines counts as two."""
    (tmp_path / "pack").mkdir()
    for name, text in FILES.items():
        (tmp_path / "pack" / name).write_text(text)
    assert figures(tmp_path, Path("pack")) == {
        "modules": "4",
        "lines": "16",
        "lines of a module, median": "4",
        "lines of a module, 90th percentile": "6",
        "functions": "2",
        "lines of a function, median": "2",
        "lines of a function, 90th percentile": "2",
        "modules imported by one": "1",
        "of these, under 80 lines": "1",
        "share of lines that import": "37.5%",
    }


LIMITED = """
[counted]
pack = [".py", ".yaml"]

[names]
checked = ["pack"]

[lines]
pack = 4
"pack/room .yaml" = 2
"pack/gone" = 1
"""


def test_rooms_above_their_limits_and_names_that_say_nothing_are_told(tmp_path: Path) -> None:
    """A room without a limit and a limit without a room are as wrong as too many lines."""
    room = tmp_path / "pack" / "room"
    room.mkdir(parents=True)
    (tmp_path / LIMITS).parent.mkdir()
    (tmp_path / LIMITS).write_text(LIMITED)
    (room.parent / "top.py").write_text("for each in ():\n    pass\n\n\npod = 1\n")
    (room / "low.py").write_text("def low(known, node): ...\n")
    (room / "table.yaml").write_text("a: 1\nb: 2\n")
    told = [line.partition(";")[0] for line in broken_limits(tmp_path)]
    assert told == [
        "tools/limits.toml: pack has 5 lines, 1 above its limit",
        "tools/limits.toml: pack/room has no limit",
        "tools/limits.toml: pack/gone is no room",
        "pack/room/low.py:1: the name 'known' leaves open what the value is",
        "pack/top.py:1: the name 'each' leaves open what the value is",
    ]
