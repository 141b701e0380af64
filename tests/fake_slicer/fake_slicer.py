"""A fake Slicer executable for tests: takes the arguments that Slicer takes, is the practice Slicer inside, and runs the
--python-script as Slicer does: in `__main__`, by the event loop, once the application is up.

The environment variable FAKE_SLICER says how it goes wrong:
exit, hang, error, old, switched_off, everywhere, quits_later; anything else works.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
import types

parser = argparse.ArgumentParser(prog="Slicer")
parser.add_argument("--no-splash", action="store_true")
parser.add_argument("--python-script", required=True)
arguments = parser.parse_args()
mode = os.environ.get("FAKE_SLICER", "")

print("Switch to module: Welcome", flush=True)
if mode == "exit":
    print("error: no Qt platform plugin could be initialized", file=sys.stderr, flush=True)
    sys.exit(1)
if mode == "hang":
    print("Loading modules", flush=True)
    time.sleep(600)

from practice_slicer import startup  # noqa: E402
from practice_slicer.event_loop import loop  # noqa: E402

loop.stop_on_signals()
startup.start(tempfile.mkdtemp(prefix="fake-slicer-"), with_data=False)
import slicer  # noqa: E402

if mode == "old":
    sys.modules["WebServer"] = None  # makes its import fail, as where there is none
elif mode != "switched_off":
    folder = os.path.dirname(os.path.abspath(__file__))
    slicer.modules.webserver = types.SimpleNamespace(path=os.path.join(folder, "WebServer.py"))


def run_script():
    if mode == "error":
        print("Traceback (most recent call last):\n  a broken extension", file=sys.stderr, flush=True)
        slicer.app.__class__.applicationVersion = property(lambda app: 1 / 0)
    with open(arguments.python_script, encoding="utf-8") as stream:
        source = stream.read()
    try:
        exec(compile(source, arguments.python_script, "exec"), sys.modules["__main__"].__dict__)
    except Exception:
        traceback.print_exc()
    if mode == "quits_later":
        import qt

        qt.QTimer.singleShot(1500, lambda: os._exit(3))


loop.post(run_script)
os._exit(loop.run())
