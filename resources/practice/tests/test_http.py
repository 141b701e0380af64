"""The HTTP layer and the routes behave as Slicer's Web Server does, weak spots included.

A client that passes against this server must work with Slicer as released; each quirk here has broken a client before.
"""

import json
import unittest

from support import PracticeTestCase

EXEC = "/slicer/exec"


class HttpLayer(PracticeTestCase):
    def test_title_case_content_length_counts_and_lower_case_does_not(self):
        self.assertEqual(self.slicer.request("POST", EXEC, b"__execResult = 7")[2], b"7")
        status, headers, content = self.slicer.request("POST", EXEC, b"__execResult = 7", "content-length")
        self.assertEqual((status, headers, content), ("HTTP/1.1 404 Not Found", [], b""))

    def test_empty_result_is_404_without_headers(self):
        for body in (b"", None):
            received, closed = self.slicer.raw(
                b"POST /slicer/exec HTTP/1.1\r\nHost: x\r\n"
                + (b"" if body is None else b"Content-Length: 0\r\n")
                + b"\r\n"
            )
            self.assertEqual((received, closed), (b"HTTP/1.1 404 Not Found\r\n\r\n", True))

    def test_only_the_first_of_two_requests_on_a_connection_is_answered(self):
        request = b"GET /slicer/mrml/ids?class=vtkMRMLSliceNode HTTP/1.1\r\nHost: x\r\n\r\n"
        received, closed = self.slicer.raw(request + request)
        self.assertTrue(closed)
        self.assertEqual(received.count(b"HTTP/1.1 200 OK"), 1)

    def test_reply_has_exactly_the_headers_of_slicer(self):
        status, headers, content = self.slicer.request("POST", EXEC, b"__execResult = {'a': 1}")
        self.assertEqual(status, "HTTP/1.1 200 OK")
        self.assertEqual(headers, ["Content-Type: application/json", "Content-Length: 8", "Cache-Control: no-cache"])
        self.assertEqual(content, b'{"a": 1}')

    def test_body_in_later_packets_is_read(self):
        head, body = b"POST /slicer/exec HTTP/1.1\r\nContent-Length: 16\r\n\r\n", b"__execResult=123"
        received, _ = self.slicer.raw(head, body[:5], body[5:])
        self.assertTrue(received.endswith(b"\r\n\r\n123"), received)

    def test_header_split_from_its_body_waits_for_ever(self):
        message = b"POST /slicer/exec HTTP/1.1\r\nContent-Length: 16\r\n\r\n__execResult=123"
        self.assertEqual(self.slicer.raw(message[:30], message[30:], wait=0.7), (b"", False))

    def test_unknown_methods_and_http_1_0_are_never_answered(self):
        for line in (
            b"HEAD /slicer/mrml/ids HTTP/1.1",
            b"PATCH /slicer/mrml HTTP/1.1",
            b"GET /slicer/mrml HTTP/1.0",
        ):
            self.assertEqual(self.slicer.raw(line + b"\r\nHost: x\r\n\r\n", wait=0.5), (b"", False), line)

    def test_options_reply_lacks_its_last_line(self):
        received, closed = self.slicer.raw(b"OPTIONS /slicer/exec HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual((received, closed), (b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n", True))

    def test_there_are_no_static_pages(self):
        for path in ("/", "/slicer", "/none.html", "/../../../../etc/hostname", "//etc/hostname"):
            self.assertEqual(self.slicer.request("GET", path)[0], "HTTP/1.1 404 Not Found", path)

    def test_a_megabyte_of_code_runs(self):
        code = b'x = "' + b"a" * (1 << 20) + b'"\n__execResult = len(x)'
        self.assertEqual(self.slicer.request("POST", EXEC, code)[2], b"1048576")


class Exec(PracticeTestCase):
    def error(self, code):
        status, headers, content = self.slicer.request("POST", EXEC, code)
        self.assertEqual(status, "HTTP/1.1 500 Internal Server Error")
        self.assertIn("Content-Type: application/json", headers)
        answer = json.loads(content)
        self.assertIs(answer["success"], False)
        return answer["message"]

    def test_errors_carry_only_their_text(self):
        self.assertEqual(self.error(b'raise ValueError("bad thing")'), "Server error: bad thing")
        self.assertEqual(self.error(b"raise RuntimeError"), "Server error: ")
        self.assertEqual(self.error(b'{}["k"]'), "Server error: 'k'")
        self.assertEqual(self.error(b"def (:"), "Server error: invalid syntax (<string>, line 1)")
        self.assertEqual(self.error(b"nope"), "Server error: name 'nope' is not defined")
        self.assertIn("is not JSON serializable", self.error(b"__execResult = slicer.mrmlScene"))

    def test_names_stay_between_calls_but_the_result_does_not(self):
        self.run_code("kept = 41; __execResult = 5")
        self.assertEqual(self.run_code("y = 1"), {})
        self.assertEqual(self.run_code("__execResult = kept + 1"), 42)

    def test_namespace_is_that_of_slicers_handler_not_of_the_console(self):
        names = "slicer vtk qt json logging os time urllib numpy ctk getNode".split()
        found = self.run_code(f"__execResult = [name for name in {names!r} if name in globals()]")
        self.assertEqual(found, names[:-2])

    def test_other_requests_run_inside_code_that_pumps_events(self):
        code = (
            "import socket\n"
            "s = socket.create_connection(('127.0.0.1', %d))\n"
            "s.sendall(b'POST /slicer/exec HTTP/1.1\\r\\nContent-Length: 18\\r\\n\\r\\n__execResult = \"B\"')\n"
            "__execResult = 'A'\n"
            "for _ in range(20):\n    slicer.app.processEvents(); time.sleep(0.01)\n" % self.slicer.port
        )
        self.assertEqual(self.run_code(code), "B")  # the shared result is swapped, as in Slicer

    def test_interrupt_gives_no_reply_and_the_server_lives(self):
        code = b"raise KeyboardInterrupt"
        request = b"POST /slicer/exec HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(code) + code
        self.assertEqual(self.slicer.raw(request, wait=0.5), (b"", False))
        self.assertEqual(self.run_code("__execResult = 1"), 1)

    def test_get_with_source_is_decoded_twice(self):
        self.assertEqual(self.slicer.get(EXEC + "?source=__execResult=%22%2525%22"), b'"%"')

    def test_printed_text_does_not_reach_stdout(self):
        self.run_code("print('printed on purpose'); os.write(1, b'written on purpose\\n')")
        self.assertIn("printed on purpose", self.slicer.messages())
        self.assertIn("written on purpose", self.slicer.messages())


class Routes(PracticeTestCase):
    def test_version_says_practice(self):
        version = json.loads(self.slicer.get("/slicer/system/version"))
        self.assertEqual(version["applicationName"], "Slicer")
        self.assertRegex(version["applicationVersion"], r"^5\.13\.\d+-practice$")
        self.assertGreater(int(version["revision"]), 0)
        self.assertIn("practice", self.run_code("__execResult = slicer.util.mainWindow().windowTitle"))

    def test_nodes_are_listed_and_removed(self):
        self.run_code("slicer.mrmlScene.AddNewNodeByClass('vtkMRMLModelNode', 'Bone')")
        self.assertEqual(json.loads(self.slicer.get("/slicer/mrml/names?name=Bone")), ["Bone"])
        ids = json.loads(self.slicer.get("/slicer/mrml/ids?name=Bone"))
        properties = json.loads(self.slicer.get(f"/slicer/mrml/properties?id={ids[0]}"))
        self.assertEqual(properties[ids[0]]["Name"], "Bone")
        self.assertEqual(self.slicer.request("DELETE", "/slicer/mrml?name=Bone")[2], b'{"success": true}')
        status, _, content = self.slicer.request("DELETE", "/slicer/mrml?name=Bone")
        self.assertIn("500", status)
        self.assertEqual(json.loads(content)["message"], "Server error: No nodes matched the filter criteria")

    def test_volume_goes_out_as_nrrd_and_comes_back_the_same(self):
        self.run_code("import SampleData; SampleData.downloadSample('MRUSProstate')")
        nrrd = self.slicer.get("/slicer/volume?id=MRProstate")
        self.assertTrue(nrrd.startswith(b"NRRD0004\n"))
        self.assertEqual(self.slicer.request("POST", "/slicer/volume?id=Copy", nrrd)[2], b"{'status': 'success'}")
        same = self.run_code(
            "a, b = (slicer.util.getNode(n) for n in ('MRProstate', 'Copy'))\n"
            "m, n = vtk.vtkMatrix4x4(), vtk.vtkMatrix4x4(); a.GetIJKToRASMatrix(m); b.GetIJKToRASMatrix(n)\n"
            "__execResult = [bool((slicer.util.arrayFromVolume(a) == slicer.util.arrayFromVolume(b)).all()), str(m) == str(n)]"
        )
        self.assertEqual(same[0], True)
        self.assertEqual(self.slicer.get("/slicer/volume?id=Copy"), nrrd)

    def test_sample_data_by_route(self):
        self.assertEqual(self.slicer.get("/slicer/sampledata?name=FA"), b"Sample data FA loaded")
        status, _, content = self.slicer.request("GET", "/slicer/sampledata?name=Nothing")
        self.assertIn("500", status)
        self.assertEqual(json.loads(content)["message"], "Server error: sampledata Nothing was not found")

    def test_unknown_route_is_an_error(self):
        status, _, content = self.slicer.request("GET", "/slicer/nothing")
        self.assertIn("500", status)
        self.assertEqual(json.loads(content)["message"], "Server error: unknown command \"b'/nothing'\"")


if __name__ == "__main__":
    unittest.main()
