"""Compare what two policy sets do to pods."""
