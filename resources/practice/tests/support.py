"""Starts real practice Slicers for the tests and talks to them over raw sockets, so that nothing tidies the replies."""

import atexit
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START_LIMIT = 40.0  # seconds; a start takes about two


def command(*words):
    return [sys.executable, "-m", "practice_slicer", *words]


def environment():
    return dict(os.environ, PYTHONPATH=FOLDER, PYTHONDONTWRITEBYTECODE="1")


class Practice:
    """A running practice Slicer on a free port."""

    def __init__(self, *words):
        self.log = tempfile.TemporaryFile()
        started = time.monotonic()
        self.process = subprocess.Popen(
            command("--port", "0", *words), cwd=FOLDER, env=environment(), stdout=subprocess.PIPE, stderr=self.log
        )
        atexit.register(self.stop)
        line = self._first_line()
        self.start_seconds = time.monotonic() - started
        if not line.startswith("ready on 127.0.0.1:"):
            raise AssertionError(f"not ready: {line!r}\n{self.messages()}")
        self.port = int(line.rsplit(":", 1)[1])

    def _first_line(self):
        lines = []
        reader = threading.Thread(target=lambda: lines.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(START_LIMIT)
        return lines[0].decode().strip() if lines else ""

    def messages(self):
        """What it wrote to stderr so far."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()
        atexit.unregister(self.stop)

    def raw(self, *parts, wait=30.0):
        """Send bytes, in several packets if several are given; returns (all bytes received, closed by server?)."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number, part in enumerate(parts):
                if number:
                    time.sleep(0.25)
                sock.sendall(part)
            received = b""
            while True:
                try:
                    piece = sock.recv(1 << 20)
                except TimeoutError:
                    return received, False
                except ConnectionResetError:
                    return received, True
                if not piece:
                    return received, True
                received += piece

    def request(self, method, path, body=None, length_name="Content-Length"):
        """One request; returns (status line, list of header lines, body)."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        if body is not None:
            lines.append(f"{length_name}: {len(body)}")
        received, closed = self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        assert closed, "the server must close after its reply"
        head, _, content = received.partition(b"\r\n\r\n")
        status, *headers = head.decode().split("\r\n")
        return status, headers, content

    def get(self, path):
        """The body of a GET that must succeed."""
        status, _, content = self.request("GET", path)
        assert status == "HTTP/1.1 200 OK", (status, content[:500])
        return content

    def run(self, code):
        """Run code by /slicer/exec; returns its result, or raises AssertionError with the server's message."""
        status, _, content = self.request("POST", "/slicer/exec", code.encode())
        assert status == "HTTP/1.1 200 OK", (status, content.decode(), self.messages()[-2000:])
        return json.loads(content)

    def picture(self, path):
        """A picture that a route sends, as a Pillow image."""
        from PIL import Image

        return Image.open(io.BytesIO(self.get(path))).convert("RGB")


_shared = None


def shared():
    """One practice Slicer for all tests that do not end or change it; it stays until the tests are over."""
    global _shared
    if _shared is None:
        _shared = Practice()
    return _shared


class PracticeTestCase(unittest.TestCase):
    """A test on the shared practice Slicer, with an empty scene and an empty record of touched names."""

    def setUp(self):
        self.slicer = shared()
        self.slicer.run(
            "slicer.mrmlScene.Clear()\n"
            "slicer.app.practiceClearTouchedNames()\n"
            "slicer.app.layoutManager().setLayout(slicer.vtkMRMLLayoutNode.SlicerLayoutFourUpView)"
        )

    def run_code(self, code):
        return self.slicer.run(code)


def colour_count(picture):
    """How many different colours a Pillow image has: a blank one has one."""
    return len(picture.getcolors(1 << 24))
