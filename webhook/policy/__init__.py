"""Policy documents: source with line numbers, model, selectors, match, policy set. Pure."""
