"""Functions of a notebook as programs: what is accepted runs in another interpreter."""

from __future__ import annotations

import builtins
import contextlib
import io
import itertools
import linecache
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

import fairlead as fl
from fairlead.function_program import program_of
from tests.wording import mentions

_CELLS = itertools.count()


def define(cell: str) -> Callable[..., Any]:
    """The `train` that a notebook's cell defines; as IPython does, its source is known."""
    source, name = textwrap.dedent(cell), f"<cell of a test {next(_CELLS)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    found: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, name, "exec", dont_inherit=True), found)  # noqa: S102
    train: Callable[..., Any] = found["train"]
    return train


ACCEPTED = {
    "a global of the name of an own import": """
        import time
        def train():
            import time
            print(time.gmtime(0).tm_year)
    """,
    "an attribute of the name of a global": """
        pi = 3
        def train():
            import math
            print(math.floor(math.pi))
    """,
    "recursion": """
        def train(left=3):
            print(left)
            if left:
                train(left - 1)
    """,
    "an inner function, a class and a comprehension of its own": """
        def train():
            scale = 2
            class Model:
                size = 3
                def apply(self, value):
                    return value * scale
            def twice(value):
                return Model().apply(value)
            print([twice(each) for each in range(Model.size)])
    """,
    "a name that it makes global": """
        def train():
            global count
            count = 1
            print(count, __name__)
    """,
    "annotations that are not evaluated": """
        from __future__ import annotations
        from decimal import Decimal
        def train(value: Decimal = 1) -> Decimal:
            print(value)
    """,
    "a text with lines at the margin": '''
        def train():
            print("""first
        second""")
    ''',
}
REFUSED = {
    "from around": ("data = 1\ndef train():\n    print(data)", ("data", "from around")),
    "not defined anywhere": ("def train():\n    print(nowhere)", ("nowhere",)),
    "in a comprehension": ("k = 1\ndef train():\n    print([k for _ in range(2)])", ("k",)),
    "in a lambda": ("k = 1\ndef train():\n    print((lambda: k)())", ("k",)),
    "in an inner function": (
        "k = 1\ndef train():\n    def inner():\n        return k\n    print(inner())",
        ("k",),
    ),
    "in a class": ("k = 1\ndef train():\n    class A:\n        b = k\n    print(A.b)", ("k",)),
    "in a default": ("k = 1\ndef train(value=k):\n    print(value)", ("k",)),
    "in an annotation": (
        "from decimal import Decimal\ndef train(value: Decimal = 1):\n    print(value)",
        ("Decimal",),
    ),
    "of an outer function": (
        "def outer(n):\n    def train():\n        print(n)\n    return train\ntrain = outer(1)",
        ("n", "arguments"),
    ),
    "decorated": (
        "import functools\n@functools.cache\ndef train():\n    print(1)",
        ("decorated",),
    ),
    "decorated by a function": (
        "def twice(f):\n    return f\n@twice\ndef train():\n    print(1)",
        ("decorated",),
    ),
    "async": ("async def train():\n    print(1)", ("async", "asyncio.run")),
    "a generator": ("def train():\n    print(1)\n    yield", ("generator",)),
    "a method": (
        "class A:\n    def train(self):\n        print(1)\ntrain = A().train",
        ("method",),
    ),
    "a function of a class": (
        "class A:\n    def train():\n        print(1)\ntrain = A.train",
        ("method",),
    ),
    "a lambda": ("train = lambda: print(1)", ("def",)),
    "built in": ("train = print", ("print", "def")),
}


@pytest.mark.parametrize("cell", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted_does_in_another_process_what_it_does_here(cell: str) -> None:
    train = define(cell)
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        train()
    program = [sys.executable, "-W", "error", "-c", program_of(train, {})]
    there = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (there.returncode, there.stdout) == (0, here.getvalue()), there.stderr


@pytest.mark.parametrize(("cell", "facts"), REFUSED.values(), ids=REFUSED)
def test_what_would_end_in_an_error_there_is_refused_with_its_reason(
    cell: str, facts: tuple[str, ...]
) -> None:
    with pytest.raises(fl.FairleadError) as caught:
        program_of(define(cell), {})
    mentions(str(caught.value), *facts)


def test_what_only_a_notebook_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython puts names into the builtins of its process, and hides others."""

    def get_ipython() -> None:
        """As IPython's, which is no function of the standard library."""

    get_ipython.__module__ = "IPython.core.getipython"
    monkeypatch.setattr(builtins, "get_ipython", get_ipython, raising=False)
    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    monkeypatch.delattr(builtins, "exit")
    with pytest.raises(fl.FairleadError) as caught:
        program_of(define("def train():\n    get_ipython().system('ls')"), {})
    mentions(str(caught.value), "get_ipython", "! or %", "subprocess")
    with pytest.raises(fl.FairleadError, match="__IPYTHON__"):
        program_of(define("def train():\n    print(__IPYTHON__)"), {})
    assert program_of(define("def train():\n    exit(0)"), {})


def test_the_code_of_a_run_does_not_fill_a_cell_that_shows_it() -> None:
    run = fl.Run("mnist", image="i", code={"data.bin": b"x" * 900_000})
    assert len(repr(run)) < 1000


def test_all_reasons_are_given_at_once() -> None:
    """And a function without a source of its own has one: to define it where it has."""
    with pytest.raises(fl.FairleadError) as caught:
        program_of(define("async def train(value):\n    print(value)"), {"other": object()})
    mentions(str(caught.value), "async", "other", "no literal")
    found: dict[str, Any] = {}
    exec("def train():\n    print(1)", found)  # noqa: S102
    with pytest.raises(fl.FairleadError, match="source"):
        program_of(found["train"], {})


def test_requirements_reach_pip_as_they_are() -> None:
    """Through the shell of the container."""
    wanted = ["numpy; python_version < '3.13'", "torch[a]>=2"]
    run = fl.Run.from_function(
        define("def train():\n    print(1)"), image="i", requirements=wanted, workers=2
    )
    script = run.command[2].replace("python -m pip install --quiet", "printf '%s\\n'")
    shown = subprocess.run(
        ["sh", "-c", script.partition(" && ")[0]], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines() == wanted
