"""Convert the objects of other engines to Runs."""

from webhook.convert.engines.convert import convert_object
from webhook.convert.engines.documents import is_engine_object

__all__ = ["convert_object", "is_engine_object"]
