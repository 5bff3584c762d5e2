"""Pages in a browser. They show answers that are made elsewhere, and decide nothing."""
