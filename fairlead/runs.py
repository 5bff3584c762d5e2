"""Runs as Python objects."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping, Sequence  # noqa: TC003  (get_type_hints reads them)
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from fairlead.function_program import program_of
from fairlead.policies import Evaluated, evaluate
from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.policies import Places, Where

Preview = Evaluated


@dataclass(frozen=True)
class Run:
    """A Run before it is submitted.

    command: program and arguments. workers: replicas of role worker; 0: one replica. gpus: of each
    worker. resources: what each worker requests, such as {"memory": "16Gi"}. volumes: mount path by
    the name of a PersistentVolumeClaim. capacity: mode by capacity class: Allow, Prefer, Constrain
    or Prevent. queue: of Kueue. gang: starts
    all replicas at once, within this time, such as 20m. code: files by path, mounted at /code.
    """

    name: str
    _: KW_ONLY
    image: str
    command: Sequence[str] = ()
    framework: str = ""
    workers: int = 0
    gpus: int = 0
    resources: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    restart_scope: str = ""
    gang: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    code: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Raise FairleadError for values of other types, and for files that cannot be mounted."""
        from pydantic import ConfigDict, TypeAdapter, ValidationError

        from webhook.policy.document_parser import KEY, sentence
        from webhook.policy.findings import path_text
        from webhook.run_client.code_files import MOST_CODE

        kinds = get_type_hints(type(self))
        problems = []
        for run_field in fields(self):
            kind = TypeAdapter(kinds[run_field.name], config=ConfigDict(strict=True))
            try:
                kind.validate_python(getattr(self, run_field.name))
            except ValidationError as error:
                for line in error.errors(include_url=False):
                    at = (run_field.name, *(step for step in line["loc"] if step != KEY))
                    problems.append(f"{path_text(at)}: {sentence(line)}")
        if not problems:
            problems = [
                f"code: {path!r} is no path below /code"
                for path in self.code
                if not path or path.startswith("/") or {"", ".", ".."} & {*path.split("/")}
            ]
        if not problems and sum(map(len, self.code.values())) > MOST_CODE:
            problems.append(f"code: at most {MOST_CODE // 1024} KiB; use an image or a volume")
        if problems:
            raise UnreadableInput(problems)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str = "",
        image: str,
        requirements: Sequence[str] = (),
        arguments: Mapping[str, Any] | None = None,
        framework: str = "",
        workers: int = 0,
        gpus: int = 0,
        resources: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        volumes: Mapping[str, str] | None = None,
        capacity: Mapping[str, str] | None = None,
        queue: str = "",
        restart_scope: str = "",
        gang: str = "",
        labels: Mapping[str, str] | None = None,
        namespace: str = "",
    ) -> Run:
        """Return a Run that calls a function in each replica.

        The function's source is sent, not what it has around it: it has to import what it needs
        itself, and its arguments are literals. `requirements` are installed by pip at the start;
        the other settings are those of Run.
        Raises FairleadError with every reason for which the call would fail in another process.
        """
        if isinstance(requirements, str):
            raise UnreadableInput(["requirements: want a list of texts, and got a text"])
        program = program_of(function, arguments or {})
        wanted = shlex.join(requirements)
        install = f"python -m pip install --quiet {wanted} && " if requirements else ""
        return cls(
            name=name or function.__name__.replace("_", "-").lower(),
            image=image,
            command=("sh", "-c", f"{install}exec python /code/train.py"),
            framework=framework,
            workers=workers,
            gpus=gpus,
            resources=resources or {},
            env=env or {},
            volumes=volumes or {},
            capacity=capacity or {},
            queue=queue,
            restart_scope=restart_scope,
            gang=gang,
            labels=labels or {},
            namespace=namespace,
            code={"train.py": program.encode()},
        )

    def manifest(self) -> dict[str, Any]:
        """Return it as an object of Kubernetes, checked. Raises FairleadError with all problems."""
        from webhook.run.new_run import NewRun, checked, manifest
        from webhook.run_client.submit import with_code

        run_fields = {key: getattr(self, key) for key in NewRun._fields if hasattr(self, key)}
        raw = with_code(manifest(NewRun(**run_fields)), self.code)
        for warning in checked(raw, self.namespace or "default").warnings:
            warnings.warn(warning, stacklevel=2)
        return raw

    def preview(
        self, *, policies: Places, nodes: Where | None = None, namespaces: Where | None = None
    ) -> Preview:
        """Return what policies do to its pods, as `evaluate` does."""
        raw = self.manifest()
        where = self.namespace or "default"
        return evaluate(raw, policies=policies, nodes=nodes, namespaces=namespaces, namespace=where)

    def __str__(self) -> str:
        from webhook.text.yaml_out import yaml_text

        return yaml_text(self.manifest())
