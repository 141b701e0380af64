"""The HTTP layer of Slicer's Web Server API, with the weak spots of the original.

A client that works here must work with Slicer as released, so this server behaves as Slicer's does:

* everything runs on the main thread; code that pumps events lets the next request run inside the first;
* the server closes after each reply and reads only the first request of a connection;
* a body counts only when the header is spelled `Content-Length:`, case included; chunked bodies are not understood;
* a request whose header comes in two packets, the last of which also brings the whole body, waits for ever;
* HTTP/1.0 and other methods than GET, POST, PUT, DELETE, OPTIONS are never answered and never closed;
* an empty result is a 404 without headers; the reply to OPTIONS lacks its last line;
* an exception becomes status 500 with nothing but its text.

Two things are safer on purpose: it listens on 127.0.0.1 only, and there are no static pages (404 for every path that
is not under /slicer), because Slicer's let anyone read any file.
"""

import json
import os
import sys
import urllib.parse

from .qt_core import QSocketNotifier
from .web_api import JSON, Api

METHODS = (b"GET", b"POST", b"PUT", b"DELETE", b"OPTIONS")
READ_SIZE = 1 << 20  # bytes
SEND_TIMEOUT = 60.0  # seconds until a client that does not read its reply is given up
HEADER_END = b"\r\n\r\n"


class _Connection:
    """One client: reads one request, answers it, closes."""

    def __init__(self, server, sock):
        self.server, self.sock = server, sock
        self.received = b""
        self.expected = None  # size in bytes of header and body together, once a length was found
        self.sock.settimeout(SEND_TIMEOUT)
        self.notifier = QSocketNotifier(sock.fileno(), QSocketNotifier.Read)
        self.notifier.connect("activated(int)", self._readable)
        server.connections.add(self)

    def _readable(self, *_):
        try:
            part = self.sock.recv(READ_SIZE)
        except OSError:
            part = b""
        self.received += part
        complete = self._is_complete(part)
        if not part or complete:
            self.notifier.disconnect("activated(int)", self._readable)
            self.notifier.setEnabled(False)
        if complete:
            header_end = self.received.find(HEADER_END)
            body = self.received[header_end + len(HEADER_END) :] if self.expected is not None else b""
            self._answer(self.received[:header_end], body)
        elif not part:
            self._close()

    def _is_complete(self, part):
        """Whether the request is all there, judged as Slicer judges it."""
        if self.expected is not None:
            return len(self.received) >= self.expected
        header_end = self.received.find(HEADER_END)
        if header_end == -1:
            return False
        at = self.received.find(b"Content-Length:")
        if at == -1:
            return True
        length = int(self.received[at:].split(b"\r\n", 1)[0].split(b":", 1)[1])
        self.expected = header_end + len(HEADER_END) + length
        return len(part) == self.expected  # Slicer measures the last packet here, not all that came

    def _answer(self, header, body):
        request_line = header.split(b"\r\n", 1)[0].split(b" ")
        if len(request_line) != 3 or request_line[2] != b"HTTP/1.1" or request_line[0] not in METHODS:
            return  # Slicer leaves such a client waiting
        method, uri = request_line[0].decode(), request_line[1]
        if method == "OPTIONS":
            self._send(b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n")
            return
        status, kind, reply = b"200 OK", b"", b""
        try:
            if os.path.split(urllib.parse.urlparse(uri).path)[0].startswith(b"/slicer"):
                kind, reply = self.server.api.handle(method, uri, body)
        except Exception as error:
            message = {"success": False, "message": "Server error: " + str(error)}
            status, kind, reply = b"500 Internal Server Error", JSON, json.dumps(message).encode()
        if not reply:
            self._send(b"HTTP/1.1 404 Not Found\r\n\r\n")
            return
        head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-cache\r\n\r\n"
        self._send(head % (status, kind, len(reply)) + reply)

    def _send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            print(f"A client went away before its reply was sent: {error}", file=sys.stderr)
        self._close()

    def _close(self):
        self.sock.close()
        self.server.connections.discard(self)


class WebServer:
    """Listens and answers on the main thread's event loop."""

    def __init__(self, sock, enable_exec):
        """Listen on a bound socket."""
        self.api = Api(enable_exec)
        self.connections = set()  # keeps those alive that are never answered
        self.sock = sock
        self.sock.listen(5)
        self.notifier = QSocketNotifier(self.sock.fileno(), QSocketNotifier.Read)
        self.notifier.connect("activated(int)", self._accept)

    def _accept(self, *_):
        _Connection(self, self.sock.accept()[0])
