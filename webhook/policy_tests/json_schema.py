"""The JSON Schema of policy tests, for editors: draft 2020-12, made from the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from webhook.policy_tests.model import PolicyTest

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema


class _Plain(GenerateJsonSchema):
    """As a person would write it: what is None in Python is left out of a document."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  pydantic's signature
        return False


def schema() -> dict[str, Any]:
    """The schema of a PolicyTest document."""
    return {
        "$schema": _Plain.schema_dialect,
        **PolicyTest.model_json_schema(by_alias=True, schema_generator=_Plain),
        "title": "Fairlead PolicyTest",
    }
