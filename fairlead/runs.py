"""Runs as Python objects."""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead.policies import Evaluated, evaluate
from webhook.errors import UnreadableInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlead.policies import Places, Where

Preview = Evaluated


@dataclass(frozen=True)
class Run:
    """A Run before it is submitted.

    command: program and arguments. workers: replicas of role worker; 0: one replica. gpus: of each
    worker. resources: what each worker requests, such as {"memory": "16Gi"}. volumes: mount path by
    the name of a PersistentVolumeClaim. capacity: mode by capacity class: Allow, Prefer, Constrain
    or Prevent. queue: of Kueue. code: files by path, mounted at /code.
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
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    code: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str = "",
        image: str,
        requirements: Sequence[str] = (),
        arguments: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Run:
        """Return a Run that calls a function in each replica.

        The function's source is sent, not what it has around it: it has to import what it needs
        itself, and its arguments are literals. `requirements` are installed by pip at the start.
        Raises FairleadError for a function without a source, such as a lambda.
        """
        title = getattr(function, "__name__", "")
        try:
            source = textwrap.dedent(inspect.getsource(function))
        except (OSError, TypeError):
            source = ""
        if not source.lstrip().startswith(("def ", "@")) or function.__closure__:
            why = "its source is not that of a function of its own, without variables from around"
            raise UnreadableInput([f"{title or function}: {why}"])
        given = ", ".join(f"{key}={value!r}" for key, value in (arguments or {}).items())
        program = f"{source}\n\nif __name__ == '__main__':\n    {title}({given})\n"
        compile(program, "train.py", "exec")
        wanted = " ".join(f"'{each}'" for each in requirements)
        install = f"python -m pip install --quiet {wanted} && " if requirements else ""
        return cls(
            name=name or title.replace("_", "-").lower(),
            image=image,
            command=("sh", "-c", f"{install}exec python /code/train.py"),
            code={"train.py": program.encode()},
            **settings,
        )

    def manifest(self) -> dict[str, Any]:
        """Return it as an object of Kubernetes, checked. Raises FairleadError with all problems."""
        from webhook.cli.run.submit import with_code
        from webhook.run.new_run import NewRun, checked, manifest

        known = {key: getattr(self, key) for key in NewRun._fields if hasattr(self, key)}
        raw = with_code(manifest(NewRun(**known)), self.code)
        checked(raw, self.namespace or "default")
        return raw

    def preview(
        self, *, policies: Places, nodes: Where | None = None, namespaces: Where | None = None
    ) -> Preview:
        """Return what policies do to its pods, as `evaluate` does."""
        raw = self.manifest()
        where = self.namespace or "default"
        return evaluate(raw, policies=policies, nodes=nodes, namespaces=namespaces, namespace=where)

    def __str__(self) -> str:
        from webhook.cli.yaml_out import yaml_text

        return yaml_text(self.manifest())
