"""Convert the objects of other engines to Runs."""

from webhook.convert.engines.convert import convert_object, is_engine_object

__all__ = ["convert_object", "is_engine_object"]
