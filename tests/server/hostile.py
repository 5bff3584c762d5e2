"""Requests that no API server sends, each with what it must get."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from tests.admission.reviews import review
from webhook.admission.app import MAX_BODY_BYTES
from webhook.server.protocol import HEAD_BYTES

# Closed without an answer.
CLOSED: Final = 0
# The rest is waited for until its time is over: then closed, perhaps with a 408.
WAITS: Final = -1

REVIEW: Final = json.dumps(review()).encode()
LINE: Final = b"POST /mutate?timeout=3s HTTP/1.1"
HOST: Final = b"Host: fairlead-webhook.fairlead-system.svc"
JSON: Final = b"Content-Type: application/json"


@dataclass(frozen=True)
class Hostile:
    """What is sent over one connection, and the status of the answer: the first, and the only one.

    What is refused before it has come whole is short enough for the server to have read it all by
    then: closing on unread bytes would break the connection off, and the answer with it.
    tls: whether it is sent within TLS, or instead of it.
    """

    name: str
    sent: bytes
    gets: int
    tls: bool = True


def _head(*lines: bytes) -> bytes:
    return b"\r\n".join((*lines, b"", b""))


def _post(*headers: bytes, body: bytes = b"", line: bytes = LINE) -> bytes:
    return _head(line, HOST, JSON, *headers) + body


def _sized(body: bytes, *headers: bytes, line: bytes = LINE) -> bytes:
    return _post(*headers, b"Content-Length: %d" % len(body), body=body, line=line)


def _chunk(data: bytes, size: bytes | None = None) -> bytes:
    return (b"%x" % len(data) if size is None else size) + b"\r\n" + data + b"\r\n"


def _chunked(body: bytes, *headers: bytes) -> bytes:
    return _post(b"Transfer-Encoding: chunked", *headers, body=body)


def _path(path: bytes) -> bytes:
    return _sized(REVIEW, line=b"POST %s HTTP/1.1" % path)


def _method(method: bytes) -> bytes:
    return _head(method + b" /mutate HTTP/1.1", HOST)


END: Final = b"0\r\n\r\n"
WHOLE: Final = _sized(REVIEW)

_LINES: Final = {
    "no method": (b" /mutate HTTP/1.1\r\n\r\n", 400),
    "a method in lower case": (_sized(REVIEW, line=b"post /mutate HTTP/1.1"), 400),
    "a method that there is not": (_sized(REVIEW, line=b"BREW /mutate HTTP/1.1"), 400),
    "a method of 10,000 letters": (b"P" * 10_000, 400),
    "GET": (_method(b"GET"), 405),
    "HEAD": (_method(b"HEAD"), 405),
    "PUT": (_method(b"PUT"), 405),
    "DELETE": (_method(b"DELETE"), 405),
    "PATCH": (_method(b"PATCH"), 405),
    "OPTIONS": (_method(b"OPTIONS"), 405),
    "TRACE": (_method(b"TRACE"), 405),
    "CONNECT": (_head(b"CONNECT 10.0.0.1:443 HTTP/1.1", HOST), 400),
    "CONNECT to a path": (_head(b"CONNECT /mutate HTTP/1.1", HOST), 400),
    "OPTIONS *": (_head(b"OPTIONS * HTTP/1.1", HOST), 404),
    "HTTP/0.9": (b"GET /mutate\r\n\r\n", 400),
    "HTTP/1.0": (_sized(REVIEW, line=b"POST /mutate HTTP/1.0"), 200),
    "HTTP/1.2": (_sized(REVIEW, line=b"POST /mutate HTTP/1.2"), 400),
    "HTTP/2.0": (_sized(REVIEW, line=b"POST /mutate HTTP/2.0"), 400),
    "HTTP/9.9": (_sized(REVIEW, line=b"POST /mutate HTTP/9.9"), 400),
    "HTTP/1.1.1": (_sized(REVIEW, line=b"POST /mutate HTTP/1.1.1"), 400),
    "HTTP/01.1": (_sized(REVIEW, line=b"POST /mutate HTTP/01.1"), 400),
    "HTPP/1.1": (_sized(REVIEW, line=b"POST /mutate HTPP/1.1"), 400),
    "HTTP/2 with prior knowledge": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a version without a path": (b"POST HTTP/1.1\r\n\r\n", 400),
    "a space in the path": (_path(b"/mu tate"), 400),
    "a zero in the path": (_path(b"/mutate\x00"), 400),
    "bytes that are no ASCII in the path": (_path(b"/mutate\xff\xfe"), 400),
    "a path of 20,000 bytes": (_path(b"/" + b"a" * 20_000), 431),
    "a query of 20,000 bytes": (_path(b"/mutate?" + b"a" * 20_000), 431),
    "a path with an escaped letter": (_path(b"/%6dutate"), 200),
    "a path with an escaped zero": (_path(b"/mutate%00"), 404),
    "a path with a broken escape": (_path(b"/%zz"), 404),
    "a path with an escape that is no UTF-8": (_path(b"/%ff"), 404),
    "a path upwards": (_path(b"/../mutate"), 404),
    "a path with two slashes": (_path(b"//mutate"), 404),
    "a path with a slash behind": (_path(b"/mutate/"), 404),
    "the path of a proxy": (_path(b"http://10.0.0.1/mutate"), 200),
    "the path of a proxy without a path": (_path(b"http://10.0.0.1"), 400),
    "a path without a slash": (_path(b"mutate"), 400),
    "a path to files": (_path(b"/mutate/../../../etc/passwd"), 404),
    "SSH": (b"SSH-2.0-OpenSSH_9.6\r\n", 400),
    "SMTP": (b"EHLO example\r\n", 400),
    "the PROXY protocol": (b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n" + WHOLE, 400),
    "TLS within TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "zeros": (bytes(1000), 400),
    "10,000 empty lines": (b"\r\n" * 10_000, 431),
    "half a line": (b"POST /mut", WAITS),
}

_HEADERS: Final = {
    "no Host": (_head(LINE, JSON, b"Content-Length: %d" % len(REVIEW)) + REVIEW, 200),
    "two Hosts": (_sized(REVIEW, b"Host: other"), 200),
    "a Host of another": (_sized(REVIEW, b"X-Forwarded-Host: 10.0.0.1"), 200),
    "a header without a colon": (_sized(REVIEW, b"Accept"), 400),
    "a header without a name": (_sized(REVIEW, b": a"), 400),
    "a space in a header's name": (_sized(REVIEW, b"Acc ept: a"), 400),
    "a space before the colon": (_sized(REVIEW, b"Accept : a"), 400),
    "a control character in a header's name": (_sized(REVIEW, b"Acc\x01ept: a"), 400),
    "bytes that are no ASCII in a header's name": (_sized(REVIEW, b"Acc\xffept: a"), 400),
    "a zero in a header": (_sized(REVIEW, b"Accept: a\x00b"), 400),
    "a carriage return in a header": (_sized(REVIEW, b"Accept: a\rb"), 400),
    "lines that end without a carriage return": (WHOLE.replace(b"\r\n", b"\n"), 400),
    "a header on two lines": (_sized(REVIEW, b"Accept: a\r\n b"), 400),
    "bytes that are no ASCII in a header": (_sized(REVIEW, b"Accept: \xff\xfe"), 200),
    "a header of 20,000 bytes": (_sized(REVIEW, b"A: " + b"a" * 20_000), 431),
    "a header's name of 20,000 bytes": (_sized(REVIEW, b"a" * 20_000 + b": a"), 431),
    "2,500 headers": (_sized(REVIEW, *[b"A%d: b" % at for at in range(2_500)]), 431),
    "101 headers": (_sized(REVIEW, *[b"A%d: b" % at for at in range(98)]), 431),
    "100 headers": (_sized(REVIEW, *[b"A%d: b" % at for at in range(97)]), 200),
    "headers without an end": (_post(*[b"A: " + b"b" * 1_000] * 20)[:-2], 431),
    "headers just within the limit": (_sized(REVIEW, b"A: " + b"a" * (HEAD_BYTES - 1_000)), 200),
    "headers that stop": (_post()[:-2], WAITS),
    "another type of content": (_sized(REVIEW).replace(JSON, b"Content-Type: text/plain"), 415),
    "no type of content": (_sized(REVIEW).replace(JSON + b"\r\n", b""), 200),
    "a type of content of 10,000 bytes": (
        _sized(REVIEW).replace(JSON, b"Content-Type: " + b"a" * 10_000),
        415,
    ),
    "compressed content, by its header": (_sized(b"\x1f\x8b\x08", b"Content-Encoding: gzip"), 400),
    "to expect something else": (_sized(REVIEW, b"Expect: a-miracle"), 200),
    "to be let go on": (_sized(REVIEW, b"Expect: 100-continue"), 200),
    "to have the connection closed": (_sized(REVIEW, b"Connection: close"), 200),
    "credentials": (_sized(REVIEW, b"Authorization: Bearer " + b"a" * 10_000), 200),
    "an upgrade to HTTP/2": (
        _sized(REVIEW, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings:"),
        400,
    ),
    "an upgrade to WebSocket": (
        _sized(REVIEW, b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),
        400,
    ),
    "an upgrade to TLS": (_sized(REVIEW, b"Connection: upgrade", b"Upgrade: TLS/1.0"), 400),
    "an upgrade of a GET": (
        _head(b"GET /mutate HTTP/1.1", HOST, b"Connection: Upgrade", b"Upgrade: websocket"),
        400,
    ),
    "an upgrade that nobody asks for": (_sized(REVIEW, b"Upgrade: h2c"), 200),
    "to upgrade to nothing": (_sized(REVIEW, b"Connection: upgrade"), 200),
}


def _length(value: bytes, body: bytes = REVIEW) -> bytes:
    return _post(b"Content-Length:" + value, body=body)


_LENGTHS: Final = {
    "a length below zero": (_length(b" -5"), 400),
    "a length with a plus": (_length(b" +5"), 400),
    "a length with an underscore": (_length(b" 1_0"), 400),
    "a length in hexadecimal": (_length(b" 0x10"), 400),
    "a length with a fraction": (_length(b" 1.5"), 400),
    "a length with an exponent": (_length(b" 1e3"), 400),
    "a length that is a word": (_length(b" many"), 400),
    "a length that is empty": (_length(b""), 400),
    "two numbers as a length": (_length(b" 5 5"), 400),
    "a list of lengths": (_length(b" 5, 5"), 400),
    "two equal lengths": (_sized(REVIEW, b"Content-Length: %d" % len(REVIEW)), 400),
    "two different lengths": (_sized(REVIEW, b"Content-Length: 5"), 400),
    "a length of 5,000 zeros": (_length(b" " + b"0" * 5_000, b""), 400),
    "a length with 5,000 zeros before it": (_length(b" " + b"0" * 5_000 + b"5", b"12345"), 400),
    "a length of 19 digits": (_length(b" 9223372036854775807"), 200),
    "a length of 20 digits": (_length(b" 18446744073709551615"), 400),
    "a length over 64 bits": (_length(b" 18446744073709551616"), 400),
    "a length of 100 digits": (_length(b" " + b"9" * 100), 400),
    "a length over the limit": (_length(b" %d" % (MAX_BODY_BYTES + 1)), 200),
    "a body that is shorter than its length": (_length(b" %d" % (len(REVIEW) + 1)), WAITS),
    "a body that is longer than its length": (_length(b" %d" % (len(REVIEW) - 1)), CLOSED),
    "a body with a length of zero": (_length(b" 0"), CLOSED),
    "a body without a length": (_post(body=REVIEW), CLOSED),
    "no body": (_length(b" 0", b""), 400),
}

_TRAILERS: Final = b"".join(b"x%d: y\r\n" % at for at in range(10))

_CHUNKS: Final = {
    "chunks": (_chunked(_chunk(REVIEW) + END), 200),
    "chunks of one byte": (
        _chunked(b"".join(_chunk(b"%c" % each) for each in REVIEW) + END),
        200,
    ),
    "a chunk's size with zeros before it": (
        _chunked(_chunk(REVIEW, b"0000%x" % len(REVIEW)) + END),
        200,
    ),
    "a chunk's size over 64 bits": (_chunked(_chunk(REVIEW, b"f" * 17) + END), 400),
    "a chunk's size of 20,000 zeros": (_chunked(b"0" * 20_000), 431),
    "a chunk's size below zero": (_chunked(_chunk(REVIEW, b"-5") + END), 400),
    "a chunk's size with 0x": (_chunked(_chunk(REVIEW, b"0x%x" % len(REVIEW)) + END), 400),
    "a chunk's size that is no number": (_chunked(_chunk(REVIEW, b"xyz") + END), 400),
    "a chunk's size that is empty": (_chunked(_chunk(REVIEW, b"") + END), 400),
    "a chunk that is longer than its size": (_chunked(_chunk(REVIEW, b"1") + END), 400),
    "a chunk that is shorter than its size": (
        _chunked(_chunk(REVIEW, b"%x" % (len(REVIEW) + 1)) + END),
        400,
    ),
    "a chunk without its end of line": (
        _chunked(b"%x\r\n" % len(REVIEW) + REVIEW + END),
        400,
    ),
    "chunks whose lines end without a carriage return": (
        _chunked((_chunk(REVIEW) + END).replace(b"\r\n", b"\n")),
        400,
    ),
    "an extension of a chunk": (_chunked(_chunk(REVIEW, b"%x;a=b" % len(REVIEW)) + END), 200),
    "an extension of 20,000 bytes": (_chunked(b"5;a=" + b"b" * 20_000), 431),
    "an extension in quotes without an end": (_chunked(b'5;a="' + b"b" * 20_000), 431),
    "chunks without a last one": (_chunked(_chunk(REVIEW)), WAITS),
    "chunks over the limit": (_chunked(_chunk(b"[" * (MAX_BODY_BYTES + 1)) + END), 413),
    "a chunk's size over the limit": (_chunked(b"7fffffff\r\n" + REVIEW), WAITS),
    "trailers": (_chunked(_chunk(REVIEW) + b"0\r\n" + _TRAILERS + b"\r\n"), 200),
    "a trailer that would be a header": (
        _chunked(_chunk(REVIEW) + b"0\r\nContent-Type: text/plain\r\n\r\n"),
        200,
    ),
    "a length as a trailer": (_chunked(_chunk(REVIEW) + b"0\r\nContent-Length: 5\r\n\r\n"), 400),
    "trailers of 20,000 bytes": (_chunked(_chunk(REVIEW) + b"0\r\n" + b"x: y\r\n" * 3_500), 431),
    "one trailer of 20,000 bytes": (_chunked(_chunk(REVIEW) + b"0\r\nx: " + b"y" * 20_000), 431),
    "a trailer's name of 20,000 bytes": (_chunked(_chunk(REVIEW) + b"0\r\n" + b"x" * 20_000), 431),
    "trailers that stop": (_chunked(_chunk(REVIEW) + b"0\r\nx: y\r\n"), WAITS),
    "a trailer without a colon": (_chunked(_chunk(REVIEW) + b"0\r\nxy\r\n\r\n"), 400),
    "chunks and a length": (
        _chunked(_chunk(REVIEW) + END, b"Content-Length: %d" % len(REVIEW)),
        400,
    ),
    "a length and chunks": (
        _post(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=_chunk(REVIEW) + END),
        400,
    ),
    "chunks twice": (
        _post(b"Transfer-Encoding: chunked, chunked", body=_chunk(REVIEW) + END),
        400,
    ),
    "an encoding that there is not": (
        _post(b"Transfer-Encoding: xchunked", body=_chunk(REVIEW) + END),
        400,
    ),
    "no encoding, by its name": (_post(b"Transfer-Encoding: identity", body=REVIEW), 400),
    "chunks that are compressed afterwards": (
        _post(b"Transfer-Encoding: chunked, gzip", body=_chunk(REVIEW) + END),
        400,
    ),
    "chunks in capitals": (_post(b"TRANSFER-ENCODING: CHUNKED", body=_chunk(REVIEW) + END), 200),
    "chunks behind a vertical tab": (
        _post(b"Transfer-Encoding: \x0bchunked", body=_chunk(REVIEW) + END),
        400,
    ),
    "an encoding on two lines": (
        _post(b"Transfer-Encoding:\r\n chunked", body=_chunk(REVIEW) + END),
        400,
    ),
}

_PIPELINES: Final = {
    "two requests at once": (WHOLE * 2, CLOSED),
    "a hundred requests at once": (WHOLE * 100, CLOSED),
    "half a request behind a whole one": (WHOLE + WHOLE[:50], CLOSED),
    "one byte behind a whole request": (WHOLE + b"P", CLOSED),
    "an empty line behind a whole request": (WHOLE + b"\r\n", 200),
    "a request behind one that closes": (_sized(REVIEW, b"Connection: close") + WHOLE, 200),
    "a request behind chunks": (_chunked(_chunk(REVIEW) + END) + WHOLE, CLOSED),
    "a request within the body of another": (
        _post(b"Content-Length: 0", body=_head(b"GET /admin HTTP/1.1", HOST)),
        CLOSED,
    ),
}


def _with(**request: object) -> bytes:
    return _sized(json.dumps(review(**request)).encode())


_BODIES: Final = {
    "no JSON": (_sized(b"{"), 400),
    "JSON null": (_sized(b"null"), 400),
    "a JSON list": (_sized(b"[]"), 400),
    "a JSON number": (_sized(b"1e999"), 400),
    "JSON's NaN": (_sized(b"NaN"), 400),
    "JSON that is nested 100,000 deep": (_sized(b"[" * 100_000 + b"]" * 100_000), 400),
    "JSON with a byte order mark": (_sized(b"\xef\xbb\xbf" + REVIEW), 400),
    "JSON in UTF-16": (_sized(REVIEW.decode().encode("utf-16")), 400),
    "JSON that is no UTF-8": (_sized(b'{"kind": "\xff\xfe"}'), 400),
    "half a surrogate": (_sized(b'{"kind": "\\ud800"}'), 400),
    "an integer of 10,000 digits": (_sized(b'{"a": ' + b"9" * 10_000 + b"}"), 400),
    "a string of 5 MB": (_sized(b'"' + b"a" * 5_000_000 + b'"'), 400),
    "two million empty lists": (_sized(b"[" + b"[]," * 1_999_999 + b"[]]"), 400),
    "two million empty objects behind many digits": (
        _sized(b'["' + b"0" * 19 + b'"' + b",{}" * 2_000_000 + b"]"),
        400,
    ),
    "two million empty members": (_sized(b'{"":""' + b',"":""' * 1_000_000 + b"}"), 400),
    "two million quotation marks behind many digits": (
        _sized(b"0" * 19 + b'"' * 2_000_000),
        400,
    ),
    "a kind of 5 MB": (_with(kind="a" * 5_000_000), 400),
    "another kind": (_sized(b'{"kind": "Pod", "apiVersion": "v1"}'), 400),
    "a review without a request": (
        _sized(b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}'),
        400,
    ),
    "an uid that is empty": (_with(uid=""), 400),
    "an uid of 1 MB that takes six in a log": (_with(uid="\x7f" * 1_000_000), 400),
    "a name of 1 MB": (_with(name="\x7f" * 1_000_000), 400),
    "a namespace of 1 MB": (_with(namespace="\x7f" * 1_000_000), 400),
    "an operation of 1 MB": (_with(operation="\x7f" * 1_000_000), 400),
    "an uid that is a list": (_with(uid=["a"]), 400),
    "an object that is a string": (_with(object="pod"), 400),
    "an object that is nested 300 deep": (
        _with(object={"metadata": {}, "spec": {"affinity": json.loads("[" * 300 + "]" * 300)}}),
        200,
    ),
    "an update": (_with(operation="UPDATE"), 400),
    "a namespace that nobody knows": (_with(namespace="../../etc"), 503),
}

_NO_TLS: Final = {
    "HTTP without TLS": WHOLE,
    "a GET without TLS": b"GET /mutate HTTP/1.1\r\n\r\n",
    "zeros instead of a hello": bytes(1_000),
    "a hello of SSL 2": b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10" + bytes(37),
    "a record that is longer than allowed": b"\x16\x03\x01\xff\xff" + bytes(70_000),
    "a hello of 100,000 bytes": b"\x16\x03\x01\x40\x00\x01\x01\x86\xa0" + bytes(100_000),
    "data before the handshake": b"\x17\x03\x03\x00\x05hello",
    "an alert before the handshake": b"\x15\x03\x03\x00\x02\x02\x28",
    "a heartbeat before the handshake": b"\x18\x03\x03\x00\x03\x01\x40\x00",
    "10,000 empty records": b"\x16\x03\x03\x00\x00" * 10_000,
    "10,000 changes of the cipher": b"\x14\x03\x03\x00\x01\x01" * 10_000,
}

REQUESTS: Final[tuple[Hostile, ...]] = (
    *(
        Hostile(name, sent, gets)
        for table in (_LINES, _HEADERS, _LENGTHS, _CHUNKS, _PIPELINES, _BODIES)
        for name, (sent, gets) in table.items()
    ),
    *(Hostile(name, sent, CLOSED, tls=False) for name, sent in _NO_TLS.items()),
)
