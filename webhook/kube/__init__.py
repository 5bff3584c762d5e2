"""The only importer of the kubernetes package: client, watches, caches."""
