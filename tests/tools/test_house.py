"""The figures of a package, counted by hand."""

from __future__ import annotations

from pathlib import Path

from tools.house import figures

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
