"""What certs raises when certificates cannot be read or made."""


class CertificateError(Exception):
    """A certificate or key that cannot be used as asked. The text never holds key material."""
