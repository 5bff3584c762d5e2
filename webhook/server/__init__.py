"""What a serving process needs: listeners, TLS contexts, drain, metrics, logs."""
