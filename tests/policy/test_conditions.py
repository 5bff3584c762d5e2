"""The table of match fields: one row for each field of the model."""

from __future__ import annotations

from operator import attrgetter

from webhook import names
from webhook.identity import identify
from webhook.policy.conditions import FIELDS, describe_fields
from webhook.policy.match_model import Match
from webhook.policy.subject import Subject


def test_the_table_has_the_fields_of_the_model_in_their_order() -> None:
    """A field without a row would match every pod."""
    assert [field.name for field in FIELDS] == list(Match.model_fields)
    assert tuple(field.document_name for field in FIELDS) == Match.outer_names()


def test_a_row_says_where_a_pod_has_the_value_and_which_label_gives_it() -> None:
    """The value that the label gives is the one that identify reads of it."""
    written = {
        names.RUN: "r",
        names.KIND: "Notebook",
        names.FRAMEWORK: "JAX",
        names.ROLE: "worker",
        names.REPLICA_INDEX: "7",
    }
    identity = identify(written, {}, {})
    assert identity is not None
    subject = Subject("ml", {}, written, identity)
    for field in FIELDS:
        value = attrgetter(field.subject)(subject)
        if field.form == "value":
            assert field.parse_label(written[field.label]) == value
            assert field.parse_label("nothing of ours") is None


def test_a_block_is_described_by_the_names_that_documents_have() -> None:
    """Selectors by their conditions."""
    block = Match.model_validate(
        {
            "namespaces": ["ml-*", "web"],
            "namespaceSelector": {},
            "podSelector": {"matchLabels": {"team": "a"}},
            "replicaIndexes": [0, 2],
            "coordinator": False,
        }
    )
    assert {field.document_name: text for field, text in describe_fields(block)} == {
        "namespaces": "ml-*, web",
        "namespaceSelector": "any",
        "podSelector": "team=a",
        "replicaIndexes": "0, 2",
        "coordinator": "false",
    }
