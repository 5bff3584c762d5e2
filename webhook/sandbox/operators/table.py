"""The table of operators that a sandbox can run: one YAML file each, below rows/."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import yaml
from pydantic import Field

from webhook.sandbox.binaries import Module, Program
from webhook.strict import Strict, guess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ROWS: Final = Path(__file__).parent / "rows"
Json: TypeAlias = dict[str, Any]


class GoProgram(Strict):
    """A program that is built from a Go module, which webhook/sandbox/go/<operator> pins."""

    module: str = Field(description="Path of the module.")
    package: str = Field(description="Package of the program, below the module; empty: its root.")
    seconds: int = Field(description="About how long two cores build it with empty caches.")
    variables: list[str] = Field(
        default_factory=list, description="Go variables that the linker sets, as package.name=text."
    )


class PythonProgram(Strict):
    """A Python package with what it needs, in an environment of its own."""

    requirements: str = Field(description="File below webhook/sandbox/requirements, with hashes.")
    seconds: int = Field(description="About how long pip takes to install it.")


class Beside(Strict):
    """What differs while another operator runs in the same sandbox."""

    arguments: list[str] = Field(default_factory=list, description="More arguments.")
    without: list[str] = Field(
        default_factory=list, description="CustomResourceDefinitions that the other one brings."
    )


class Operator(Strict):
    """One operator: its program, its manifests, how it is started, how its readiness is asked.

    Texts in `arguments`, `environment` and `config` have placeholders in braces: `folder` (its own
    files), `config`, `kubeconfig`, `certificates` (the folder of its certificate), `api_port` (that
    of the API server), and its ports by name. A text that is one placeholder of a port becomes a
    number.
    """

    name: str = Field(description="Name of the row's file, and of the operator's process.")
    summary: str = Field(description="What it runs, in a few words.")
    go: GoProgram | None = Field(default=None, description="Its program, if it is written in Go.")
    python: PythonProgram | None = Field(
        default=None, description="Its package, if it is written in Python."
    )
    needs: list[str] = Field(
        default_factory=list, description="Operators that are started before it."
    )
    beside: dict[str, Beside] = Field(
        default_factory=dict, description="By another operator's name."
    )
    kustomization: Json = Field(
        description="The kustomization of its manifests. Its resources are paths in the module."
    )
    objects: list[Json] = Field(
        default_factory=list,
        description="What its own installation creates beside these, if no kustomization has it.",
    )
    namespace: str = Field(description="Namespace of its account.")
    account: str = Field(description="ServiceAccount whose rights it has.")
    certificate: str = Field(
        default="", description="Secret in which it keeps the certificate that it makes itself."
    )
    asks_for: str = Field(
        default="",
        description="File that it waits for as a sign of its certificate, though it reads another.",
    )
    ports: dict[str, Literal["any"] | Annotated[int, Field(ge=1, le=65_535)]] = Field(
        default_factory=dict,
        description="Ports by name: `any`, or a number that the operator fixes. `webhook` is that "
        "of its webhooks, `api` that of its aggregated API.",
    )
    arguments: list[str] = Field(default_factory=list, description="Its command line.")
    environment: dict[str, str] = Field(default_factory=dict, description="Its environment.")
    config: Json = Field(default_factory=dict, description="Content of its configuration file.")
    health: str = Field(
        default="", description="Path on its port `health` that answers 200 once it is ready."
    )
    probes: list[Json] = Field(
        default_factory=list,
        description="Objects that the API server accepts once its webhooks answer. None is stored.",
    )
    sources: list[str] = Field(
        default_factory=list, description="Rows of `fairlead policy sources` that mark its pods."
    )
    backend: str = Field(
        default="", description="Backend of Runs whose rights the controller gets beside it."
    )

    @property
    def program(self) -> Program | None:
        """Its Go program, or None."""
        if self.go is None:
            return None
        module = Module(self.name, self.go.module, variables=tuple(self.go.variables))
        package = f"{self.go.module}/{self.go.package}".rstrip("/")
        return Program(self.name, module, package, self.go.seconds)

    @property
    def seconds(self) -> int:
        """About how long its first use takes."""
        return max(program.seconds for program in (self.go, self.python) if program)


@functools.cache
def operators() -> Mapping[str, Operator]:
    """Return every operator by its name, in the order of the names."""
    return {
        path.stem: Operator.model_validate(
            {"name": path.stem, **yaml.safe_load(path.read_text("utf-8"))}
        )
        for path in sorted(_ROWS.glob("*.yaml"))
    }


def select_operators(names: Iterable[str]) -> list[Operator]:
    """Return the operators of these names, each after those that it needs, each once.

    Raises ValueError with every name that does not exist, a near one, and all that exist.
    """
    operator_by_name = operators()
    wanted = tuple(names)
    unknown = [
        f"{name!r}{guess(name, tuple(operator_by_name))}"
        for name in wanted
        if name not in operator_by_name
    ]
    if unknown:
        raise ValueError(
            f"unknown operator {', '.join(unknown)}; want one of {', '.join(operator_by_name)}"
        )
    chosen: dict[str, Operator] = {}
    for name in wanted:
        for operator in (*select_operators(operator_by_name[name].needs), operator_by_name[name]):
            chosen.setdefault(operator.name, operator)
    return list(chosen.values())


def interception_sources(wanted: Iterable[Operator]) -> list[str]:
    """Return the rows of `fairlead policy sources` that mark these operators' pods, each once."""
    return list(dict.fromkeys(source for operator in wanted for source in operator.sources))
