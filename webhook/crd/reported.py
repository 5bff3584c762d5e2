"""The model under every status: what the controller reports of an object."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Reported(BaseModel):
    """Camel case outside; what an older or a newer controller wrote beside it is left out."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )
