"""The reference page of the engines: what each field of a Run becomes, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.frameworks.table import FRAMEWORKS
from webhook.run.backends import (
    batch_job,
    dask_operator,
    jobset,
    kuberay,
    spark_operator,
    trainer,
)
from webhook.run.backends.training_operator import KINDS, READ_ONLY
from webhook.run.model import RunSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.run.backends.backend import ObjectKind

_HEAD: Final = """\
# Engines: what a Run becomes

`fairlead run render` writes a Run as one of these objects, and `fairlead run convert` reads them. \
This page is made from the tables that both use. A field that is not in a kind's table is an error \
if the Run sets it. An unset field is left out of the object, so that the engine's own default \
holds.

In every kind, `template`, `environment`, `resources` and `mainContainer` become the pod template \
of each role. `count` becomes its number of replicas. `kind` has no counterpart: `experiment`, \
`job` and `build` are rendered alike, and `notebook`, `tensorboard` and `service` are errors. \
`byIndex` is always an error.

## Compare the engines

"""
# Fields that every kind has in its pod templates, or that no kind has.
_EVERYWHERE: Final = frozenset(
    {"kind", "backend", "framework", "environment", "template", "mainContainer", "replicas"}
)
_SERVING: Final = frozenset({"ports", "maxAgeSeconds"})
_YES: Final = "yes"
_NO: Final = "error"


def page() -> str:
    """Return the page.

    `make manifests` writes it to docs/reference/engines.md.
    """
    others = (jobset, dask_operator, trainer, kuberay, spark_operator)
    kinds = (*KINDS.values(), *(module.KIND for module in others))
    parts = [_HEAD + "\n".join(_comparison(kinds)) + "\n"]
    for title, backend, some in (
        ("kubeflow", "`--backend kubeflow`", [*KINDS.values()]),
        ("jobset", "`--backend jobset`", [jobset.KIND]),
        ("dask", "`--backend dask`", [dask_operator.KIND]),
        ("trainer", "`--backend trainer`, with a TrainingRuntime", [trainer.KIND]),
        ("kuberay", "`--backend kuberay`", [kuberay.JOB, kuberay.KIND]),
        ("spark", "`--backend spark`", [spark_operator.KIND]),
        (
            "converted",
            "`fairlead run convert`; MPIJob also `run render --mpijob v1`",
            [*READ_ONLY, batch_job.KIND],
        ),
    ):
        heading = "Other kinds that are converted" if title == "converted" else f"Backend {title}"
        parts.append(f"## {heading}\n")
        parts += ["\n".join(_kind_lines(kind, backend)) + "\n" for kind in some]
    return "\n".join(parts)


def _comparison(kinds: tuple[ObjectKind, ...]) -> Iterator[str]:
    yield "| field of the Run | " + " | ".join(kind.kind for kind in kinds) + " |"
    yield "|---|" + "---|" * len(kinds)
    policy = [
        name
        for name in RunSpec.outer_names()
        if name not in (*_EVERYWHERE, *_SERVING) and name not in FRAMEWORKS
    ]
    for name in (*policy, "replicas.*.restartPolicy"):
        yield (
            f"| `{name.replace('*', 'ROLE')}` | "
            + " | ".join(_support(kind, name) for kind in kinds)
            + " |"
        )


def _support(kind: ObjectKind, name: str) -> str:
    mapping = next((field for field in kind.fields if field.run == name), None)
    if mapping is None:
        return _NO
    return ", ".join(str(value) for value in mapping.only) or _YES


def _kind_lines(kind: ObjectKind, backend: str) -> Iterator[str]:
    framework = (
        f"framework `{kind.framework}`"
        if kind.framework
        else "any framework without files or SSH keys"
    )
    if kind is batch_job.KIND:
        framework = "no framework"
    elif kind is trainer.KIND:
        framework = "framework `pytorch`, or none"
    elif kind is kuberay.JOB:
        framework += ", for a driver that submits a program as `fairlead run convert` writes it"
    elif kind is kuberay.KIND:
        framework += ", with a Job for any other driver"
    yield f"### {kind.kind} ({kind.api_version})"
    yield ""
    yield f"{backend}, {framework}."
    if kind.roles:
        yield ""
        yield "| role | counterpart |"
        yield "|---|---|"
        yield from (f"| `{role}` | {engine_role} |" for role, engine_role in kind.roles.items())
    yield ""
    yield "| field of the Run | counterpart below `spec` | values | unset | differs |"
    yield "|---|---|---|---|---|"
    for field in kind.fields:
        place = f"`{field.engine}`" if field.engine else field.place or "always so"
        values = ", ".join(str(value) for value in field.only) or "all"
        name = field.run.replace("*", "ROLE")
        yield (
            f"| `{name}` | {place.replace('*', 'ROLE')} | {values} | {field.unset or '-'} | "
            f"{field.note or '-'} |"
        )
