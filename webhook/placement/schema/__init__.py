"""The models of placement in documents: camelCase outside, snake_case inside.

`model_dump(by_alias=True, exclude_none=True)` of any part gives the JSON that goes into a pod.
"""
