"""Connects to a shared studio like a device on the local network, and prints what happens as JSON.

    python3 device.py request URL [--method GET] [--header NAME:VALUE]… [--body-size BYTES] [--from IP]
                    [--certificate DER]           {"status": …, "headers": {…}, "body": …}
    python3 device.py versions URL                {"TLSv1_2": true, …}: the versions of TLS that the studio accepts
    python3 device.py send URL HEX…               [{"received": HEX, "isClosed": true}, …]: the response to raw bytes
    python3 device.py crowd URL COUNT [--from IP] {"seconds": …}: opens silent connections and incomplete handshakes, prints a line
                                                  once they are open, and then waits until the studio has closed them
    python3 device.py connects HOST PORT…         [true, …]: whether each port accepts a connection
    python3 device.py exchange URL COUNT [close]  {"count": …, "digest": SHA-256}: sends bytes over TLS, and receives all bytes until the other
                                                  side closes the connection; with close, closes it first and receives nothing

With --certificate, the certificate is written to a file. With --from, connections come from this address of the machine. The studio's
certificate is not verified.
"""

import argparse
import hashlib
import http.client
import json
import select
import socket
import ssl
import sys
import time
import urllib.parse


def context(version=None):
    """Returns settings that accept every certificate, and only one version of TLS if it is given."""
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    settings.check_hostname = False
    settings.verify_mode = ssl.CERT_NONE
    if version:
        settings.set_ciphers("ALL:@SECLEVEL=0")  # OpenSSL refuses to offer old versions otherwise.
        settings.minimum_version = settings.maximum_version = version
    return settings


def connect(url, source=None):
    """Returns a connection without TLS."""
    return socket.create_connection((url.hostname, url.port), timeout=20, source_address=(source, 0) if source else None)


def request(options, url):
    connection = http.client.HTTPSConnection(
        url.hostname, url.port, timeout=60, context=context(), source_address=(options.source, 0) if options.source else None)
    connection.connect()
    if options.certificate:
        with open(options.certificate, "wb") as file:
            file.write(connection.sock.getpeercert(binary_form=True))
    headers = dict(header.split(":", 1) for header in options.header)
    target = url.path + (f"?{url.query}" if url.query else "")
    connection.putrequest(options.method, target, skip_host=any(name.lower() == "host" for name in headers))
    for name, value in headers.items():
        connection.putheader(name, value)
    if options.body_size:
        connection.putheader("Content-Length", str(options.body_size))
    connection.endheaders()
    if options.body_size:
        connection.send(b"\xff" * options.body_size)
    response = connection.getresponse()
    body = response.read().decode("utf-8", "replace")
    return {"status": response.status, "headers": {k.lower(): v for k, v in response.getheaders()}, "body": body}


def versions(_, url):
    accepted = {}
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        try:
            with context(version).wrap_socket(connect(url)) as connection:
                accepted[version.name] = connection.version() is not None
        except (ssl.SSLError, OSError):
            accepted[version.name] = False
    return accepted


def send(options, url):
    results = []
    for text in options.rest:
        received, is_closed = b"", True
        with connect(url) as connection:
            try:
                connection.sendall(bytes.fromhex(text))
                while part := connection.recv(4096):
                    received += part
            except TimeoutError:
                is_closed = False
            except OSError:
                pass
        results.append({"received": received.hex(), "isClosed": is_closed})
    return results


def crowd(options, url):
    start = time.monotonic()
    waiting = []
    for index in range(int(options.rest[0])):
        connection = connect(url, options.source)
        if index % 2:
            connection.sendall(bytes.fromhex("160301020001"))  # The start of a handshake.
        waiting.append(connection)
    print("{}", flush=True)
    while waiting and time.monotonic() < start + 60:
        for connection in select.select(waiting, [], [], 1)[0]:
            try:
                is_closed = not connection.recv(4096)
            except OSError:
                is_closed = True
            if is_closed:
                waiting.remove(connection)
                connection.close()
    return {"seconds": time.monotonic() - start, "open": len(waiting)}


def exchange(options, url):
    count, is_first_to_close = int(options.rest[0]), "close" in options.rest
    received = b""
    with context().wrap_socket(connect(url)) as connection:
        connection.sendall(bytes(index % 251 for index in range(count)))
        if is_first_to_close:
            connection.unwrap()
        else:
            while part := connection.recv(1 << 16):
                received += part
    return {"count": len(received), "digest": hashlib.sha256(received).hexdigest()}


def connects(options, _):
    accepted = []
    for port in options.rest:
        try:
            socket.create_connection((options.url, int(port)), timeout=5).close()
            accepted.append(True)
        except OSError:
            accepted.append(False)
    return accepted


def main():
    actions = {
        "request": request, "versions": versions, "send": send, "crowd": crowd, "connects": connects, "exchange": exchange}
    parser = argparse.ArgumentParser(description="Connects to a shared studio like a device on the local network.")
    parser.add_argument("action", choices=actions)
    parser.add_argument("url")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--method", default="GET")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--body-size", type=int, default=0)
    parser.add_argument("--from", dest="source")
    parser.add_argument("--certificate", metavar="FILE.der")
    options = parser.parse_args()
    print(json.dumps(actions[options.action](options, urllib.parse.urlsplit(options.url))))


if __name__ == "__main__":
    sys.exit(main())
