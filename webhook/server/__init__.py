"""The serving process: listeners, TLS, graceful shutdown, metrics, logs."""
