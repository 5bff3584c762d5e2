"""The keeper of the webhook's certificates: the edge around certs.rotation."""
