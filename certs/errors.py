"""The exceptions for certificates that cannot be read or created."""


class CertificateError(Exception):
    """A certificate or key that cannot be used. The text never contains key material."""
