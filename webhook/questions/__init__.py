"""Questions of every face: read what they are about, from files or a cluster, and answer."""
