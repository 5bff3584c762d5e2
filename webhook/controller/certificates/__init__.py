"""The edge around certs.rotation: keep the webhook's certificates."""
