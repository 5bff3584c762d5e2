"""The Kubernetes API: client, watches, caches. The only importer of `kubernetes`."""
