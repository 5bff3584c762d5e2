"""What is wrong with an installation: read once, judged by pure functions, each with its cure."""
