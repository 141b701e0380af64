"""How the practice Slicer starts and ends: the ready line, exit codes, signals, the watch over its parent."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from support import FOLDER, Practice, command, environment, shared


def exec_request(code):
    return b"POST /slicer/exec HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(code) + code


class Refusals(unittest.TestCase):
    """What keeps it from starting is said in one sentence on stderr, with an exit code of its own."""

    def refused(self, words, code, part):
        result = subprocess.run(words, cwd=FOLDER, env=environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stdout), (code, ""))
        self.assertIn(part, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)

    def test_port_in_use_is_exit_code_6(self):
        port = shared().port
        self.refused(command("--port", str(port)), 6, f"cannot listen on port {port}")

    def test_missing_packages_are_exit_code_5(self):
        without_packages = [sys.executable, "-S", "-m", "practice_slicer", "--port", "0"]
        self.refused(without_packages, 5, "slicer-core and vtk and numpy and pillow")

    @unittest.skipUnless(sys.platform.startswith("linux"), "only Linux may lack a library to draw with")
    def test_no_library_to_draw_with_is_exit_code_4(self):
        code = (
            "from practice_slicer import __main__, checks\n"
            "checks.DRAWING_LIBRARIES = (('libthere-is-no-such.so.1', 'none'),)\n"
            "__main__.main(['--port', '0'])"
        )
        packages = "apt-get install -y libegl1 libegl-mesa0 libgl1-mesa-dri"
        self.refused([sys.executable, "-c", code], 4, packages)


class Life(unittest.TestCase):
    """From the ready line to the end.  Each test starts one process and checks several things, for starts cost seconds."""

    def start(self, *words):
        practice = Practice(*words)
        self.addCleanup(practice.stop)
        return practice

    @unittest.skipIf(os.name == "nt", "Windows has no SIGINT for one process")
    def test_quiet_when_idle_one_line_on_stdout_and_a_clean_end_by_signal(self):
        practice = self.start()
        self.assertLess(practice.start_seconds, 20)  # about two on a quiet machine
        practice.get("/slicer/screenshot")
        time.sleep(0.3)
        before = practice.run("__execResult = time.process_time()")
        time.sleep(1.0)
        self.assertLess(practice.run("__execResult = time.process_time()") - before, 0.1)
        folder = practice.run("__execResult = slicer.app.temporaryPath")
        self.assertTrue(os.path.isdir(folder) and folder.startswith(tempfile.gettempdir()), folder)
        with socket.create_connection(("127.0.0.1", practice.port)) as sock:
            sock.sendall(exec_request(b"while True: time.sleep(0.01)"))
            time.sleep(0.3)
            practice.process.send_signal(signal.SIGINT)
            self.assertEqual(practice.process.wait(20), 0)
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(practice.process.stdout.read(), b"")

    def test_without_exec_and_data_and_the_end_of_its_parent(self):
        parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
        self.addCleanup(parent.wait)
        practice = self.start("--no-exec", "--no-data", "--parent-pid", str(parent.pid))
        status, _, content = practice.request("POST", "/slicer/exec", b"__execResult = 1")
        self.assertIn("500", status)
        self.assertEqual(json.loads(content)["message"], "Server error: unknown command \"b'/exec'\"")
        status, _, content = practice.request("GET", "/slicer/sampledata?name=MRHead")
        self.assertIn("500", status)
        self.assertIn("--no-data", json.loads(content)["message"])
        self.assertEqual(json.loads(practice.get("/slicer/volumes")), [])
        self.assertIsNone(practice.process.poll())
        parent.kill()
        parent.wait()
        self.assertEqual(practice.process.wait(20), 0)
        self.assertIn(f"process {parent.pid}", practice.messages())

    def test_strict_mode_refuses_made_up_names_and_sys_exit_ends_it(self):
        practice = self.start("--strict-qt")
        status, _, content = practice.request("POST", "/slicer/exec", b"slicer.qMRMLSegmentsTableView()")
        self.assertIn("500", status)
        self.assertIn("is not available in the practice Slicer", json.loads(content)["message"])
        self.assertEqual(practice.run("__execResult = slicer.app.applicationName"), "Slicer")
        self.assertGreater(len(practice.get("/slicer/screenshot")), 10000)
        received, _ = practice.raw(exec_request(b"import sys; sys.exit(3)"))
        self.assertEqual(received, b"")
        self.assertEqual(practice.process.wait(20), 3)

    @unittest.skipUnless(sys.platform.startswith("linux"), "other systems have 127.0.0.1 only")
    def test_only_the_loopback_address_is_bound(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", shared().port))  # fails if the server took all addresses


if __name__ == "__main__":
    unittest.main()
