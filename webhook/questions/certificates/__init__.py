"""The certificates of an installation: their state, and the request to rotate them."""
