"""What a notebook or a tensorboard of the old schema runs, for which its file has no command.

Read in polyaxon 0.x (`polypod/notebook.py`, `polypod/tensorboard.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.polyaxon.values import want_one_of

if TYPE_CHECKING:
    from webhook.run.polyaxon.item import Item
    from webhook.run.polyaxon.notes import Notes

_NOTEBOOK_PORT: Final = 8888
_TENSORBOARD_PORT: Final = 6006
_BACKENDS: Final = ("notebook", "lab")
_SECRETS: Final = (
    "Polyaxon made the notebook's token; here Jupyter makes one, and writes it into its log: "
    "fairlead run logs"
)
_LOGS: Final = (
    "Polyaxon mounted the outputs of its experiments; here the tensorboard reads /logs: mount a "
    "volume there in spec.template of the Run"
)


class Served(NamedTuple):
    """The shell's script, and the port on which it is reached."""

    script: str
    port: int


def served(kind: str, document: Item, backend: Item | None, notes: Notes) -> Served:
    """The script of a notebook or a tensorboard, with a warning of what was different there."""
    at = document.entries.get("kind", document)
    if kind == "tensorboard":
        notes.warning(at, _LOGS)
        return Served(
            f"tensorboard --logdir=/logs --port={_TENSORBOARD_PORT} --host=0.0.0.0",
            _TENSORBOARD_PORT,
        )
    chosen = "notebook"
    if backend is not None:
        chosen = want_one_of(backend, notes, _BACKENDS) or chosen
    notes.warning(at, _SECRETS)
    return Served(
        f"jupyter {chosen} --no-browser --port={_NOTEBOOK_PORT} --ip=0.0.0.0 --allow-root "
        "--NotebookApp.allow_origin='*' --NotebookApp.trust_xheaders=True",
        _NOTEBOOK_PORT,
    )
