"""The JSON Schema of a Run, for editors; and its reference as Markdown."""

from __future__ import annotations

from typing import Any, Final

from webhook import names
from webhook.policy.json_schema import document_schema
from webhook.policy.reference import page_of
from webhook.run.model import Run
from webhook.run.words import IN_A_RUN

NAME: Final = names.RUN_KIND.lower()
_OF_THE_STATUS: Final = (
    "RunStatus",
    "RoleStatus",
    "Recovering",
    "Incident",
    "LastFailure",
    "Condition",
)
_BY_THE_SERVER: Final = "Set by the API server."


def raw() -> dict[str, Any]:
    """What pydantic makes of the model, with the words that fit a Run, and `$defs` by class.

    Raises KeyError if there are words for a field that is not there.
    """
    whole = Run.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    for (name, field), description in IN_A_RUN.items():
        definitions[name]["properties"][field]["description"] = description
    metadata = definitions["RunMetadata"]["properties"]
    for field, value in metadata.items():
        if value["description"] == _BY_THE_SERVER:
            metadata[field] = {"description": _BY_THE_SERVER}
    # Whoever writes the status writes all that is known: nothing is filled in.
    del whole["properties"]["status"]["default"]
    for name in _OF_THE_STATUS:
        for value in definitions[name]["properties"].values():
            value.pop("default", None)
    return whole


def schema() -> dict[str, Any]:
    """The schema of a document of kind Run, draft 2020-12."""
    return document_schema(names.RUN_KIND, raw())


def page() -> str:
    """The page of the Run: every field with its type and meaning."""
    return page_of(names.RUN_KIND, schema())
