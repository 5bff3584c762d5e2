"""The program that calls a function of this process in another one, or why none can."""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import symtable
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_FILE: Final = "train.py"
_DECORATED: Final = "it is decorated: give the function without its decorators"


def _names_of_modules() -> frozenset[str]:
    """Return what every module has without a definition, in an interpreter without a notebook.

    IPython adds names of its own to the builtins of this one, such as get_ipython, and hides two.
    """
    module_by_name = {
        name: getattr(value, "__module__", None) for name, value in vars(builtins).items()
    }
    library_names = {
        name
        for name, module in module_by_name.items()
        if (module or "builtins").partition(".")[0] in sys.stdlib_module_names
    }
    library_names -= {"_", "__IPYTHON__"}
    return frozenset({*library_names, "exit", "quit", "__file__", "__builtins__"})


def program_of(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Return a program that calls the function with these arguments.

    It has the function's source, and nothing of what is around it. Raises UnreadableInput with
    every reason for which it would not run, or not do what a call does.
    """
    title = getattr(function, "__name__", "") or str(function)
    definition = _definition(function)
    if isinstance(definition, str):
        raise UnreadableInput([f"{title}: {definition}"])
    source, tree = definition
    problems = [f"{title}: {problem}" for problem in _of_another_kind(function, tree)]
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        problems.append(f"{title}: {error}")
    for key, value in arguments.items():
        if not _is_literal(value):
            problems.append(f"{title}: argument {key} is no literal: {value!r}")
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    # Else annotations that are not evaluated here would be there.
    flag = __future__.annotations.compiler_flag
    head = "from __future__ import annotations\n\n" if function.__code__.co_flags & flag else ""
    call = f"if __name__ == '__main__':\n    {tree.name}({given})\n"
    program = f"{head}{source}\n\n{call}"
    if not problems and (around := sorted(_undefined(program))):
        names = ", ".join(around)
        cure = "import or make that in it"
        if "get_ipython" in around:
            cure = "lines that begin with ! or % are for a notebook alone; use subprocess"
        problems.append(f"{title}: it uses {names} from around: {cure}")
    if problems:
        raise UnreadableInput(problems)
    return program


def _definition(
    function: Callable[..., Any],
) -> tuple[str, ast.FunctionDef | ast.AsyncFunctionDef] | str:
    """Return the function's source and definition, or why it has none of its own."""
    if inspect.ismethod(function):
        return "it is a method: put what it does into a function"
    if hasattr(function, "__wrapped__"):
        return _DECORATED
    if not inspect.isfunction(function):
        return "it is no function that was defined with def"
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return "its source is not known: define it in a file or a notebook's cell"
    try:
        (tree,) = ast.parse(source).body
    except (SyntaxError, ValueError):
        # The line of a lambda, or a text with lines that dedent cannot move.
        return "its source cannot be read by itself: define it with def"
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return "its source is no definition with def"
    return source, tree


def _of_another_kind(
    function: Callable[..., Any], tree: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[str]:
    """Yield why a call of it in another process is not what it is here."""
    if tree.decorator_list:
        yield _DECORATED
    if isinstance(tree, ast.AsyncFunctionDef):
        yield "it is async: a call does nothing; call asyncio.run in a function without async"
    elif inspect.isgeneratorfunction(function):
        yield "it is a generator: a call does nothing; use its values in a function without yield"
    holder = function.__qualname__.rpartition(".")[0]
    if holder and not holder.endswith("<locals>"):
        yield "it is a method: put what it does into a function"
    if around := function.__code__.co_freevars:
        names = ", ".join(around)
        yield f"it uses {names} of the function around it: give them as arguments"


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (SyntaxError, ValueError):
        return False


def _undefined(program: str) -> set[str]:
    """Return the names that end in NameError when the program comes to them.

    Source: symtable, the compiler's own tables: which names of each block are those of the module.
    """
    module = symtable.symtable(program, _FILE, "exec")
    blocks = [module]
    for block in blocks:
        blocks += block.get_children()
    made, used = set(), set()
    for block in blocks:
        for symbol in block.get_symbols():
            if block is not module and not symbol.is_global():
                continue
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                made.add(symbol.get_name())
            if symbol.is_referenced():
                used.add(symbol.get_name())
    return used - made - _names_of_modules()
