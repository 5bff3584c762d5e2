"""What certs raises when certificates cannot be read or made."""


class CertificateError(Exception):
    """A certificate or key that cannot be used. The text never contains key material."""
