"""Policy documents: text with line numbers, models, match, policy set. Pure."""
