"""How the practice Slicer starts and ends: the ready line, exit codes, signals, the watch over its parent."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from support import FOLDER, Practice, command, environment, shared


def run(words, timeout=30):
    return subprocess.run(words, cwd=FOLDER, env=environment(), capture_output=True, text=True, timeout=timeout)


class Start(unittest.TestCase):
    def test_stdout_has_exactly_one_line_and_an_idle_process_uses_no_time(self):
        practice = Practice()
        self.addCleanup(practice.stop)
        self.assertLess(practice.start_seconds, 15)  # about two on a quiet machine
        practice.get("/slicer/screenshot")
        time.sleep(0.5)
        before = practice.run("__execResult = time.process_time()")
        time.sleep(1.5)
        self.assertLess(practice.run("__execResult = time.process_time()") - before, 0.1)
        practice.process.send_signal(signal.SIGTERM)
        self.assertEqual(practice.process.wait(10), 0)
        self.assertEqual(practice.process.stdout.read(), b"")

    def test_only_the_loopback_address_is_bound(self):
        port = shared().port
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", port))  # fails if the server took all addresses

    def test_port_in_use_is_exit_code_6(self):
        result = run(command("--port", str(shared().port)))
        self.assertEqual((result.returncode, result.stdout), (6, ""))
        self.assertIn(f"cannot listen on port {shared().port}", result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1)

    def test_missing_packages_are_exit_code_5(self):
        result = run([sys.executable, "-S", "-m", "practice_slicer", "--port", "0"])  # -S: no site-packages
        self.assertEqual((result.returncode, result.stdout), (5, ""))
        self.assertIn("slicer-core", result.stderr)
        self.assertNotIn("Traceback", result.stderr)

    @unittest.skipUnless(sys.platform.startswith("linux"), "only Linux may lack a library to draw with")
    def test_no_library_to_draw_with_is_exit_code_4(self):
        code = (
            "from practice_slicer import __main__, checks\n"
            "checks.DRAWING_LIBRARIES = (('libthere-is-no-such.so.1', 'none'),)\n"
            "__main__.main(['--port', '0'])"
        )
        result = run([sys.executable, "-c", code])
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertIn("apt-get install -y libegl1 libegl-mesa0 libgl1-mesa-dri", result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1)


class End(unittest.TestCase):
    def test_signal_ends_running_code_and_leaves_no_files(self):
        practice = Practice()
        self.addCleanup(practice.stop)
        folder = practice.run("__execResult = slicer.app.temporaryPath")
        self.assertTrue(os.path.isdir(folder))
        self.assertTrue(folder.startswith(tempfile.gettempdir()))
        code = b"while True: time.sleep(0.01)"
        with socket.create_connection(("127.0.0.1", practice.port)) as sock:
            sock.sendall(b"POST /slicer/exec HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(code) + code)
            time.sleep(0.3)
            practice.process.send_signal(signal.SIGINT)
            self.assertEqual(practice.process.wait(10), 0)
        self.assertFalse(os.path.exists(folder))

    def test_it_ends_when_its_parent_is_gone(self):
        parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        self.addCleanup(parent.wait)
        practice = Practice("--parent-pid", str(parent.pid))
        self.addCleanup(practice.stop)
        self.assertIsNone(practice.process.poll())
        parent.kill()
        parent.wait()
        self.assertEqual(practice.process.wait(10), 0)
        self.assertIn(f"process {parent.pid}", practice.messages())

    def test_delete_system_and_sys_exit_end_it(self):
        practice = Practice()
        self.addCleanup(practice.stop)
        code = b"import sys; sys.exit(3)"
        received, _ = practice.raw(b"POST /slicer/exec HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(code) + code)
        self.assertEqual(received, b"")
        self.assertEqual(practice.process.wait(10), 3)


if __name__ == "__main__":
    unittest.main()
