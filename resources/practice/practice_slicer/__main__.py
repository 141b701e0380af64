"""Starts the practice Slicer: `python -m practice_slicer --port N`.

One line goes to stdout, `ready on 127.0.0.1:PORT`, when requests are answered; everything else, what code prints too,
goes to stderr.  Exit codes: 0 ended as asked, 2 wrong arguments, 4 no library to draw with, 5 a package is missing,
6 the port is taken.
"""

import argparse
import faulthandler
import os
import shutil
import sys
import tempfile
import time
import traceback

from . import checks, made_up, parent_watch
from .event_loop import loop


def _arguments(words):
    parser = argparse.ArgumentParser(prog="practice_slicer", description="A practice 3D Slicer without a window.")
    parser.add_argument("--port", type=int, default=2016, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--no-exec", action="store_true", help="switch the /slicer/exec route off")
    parser.add_argument("--no-data", action="store_true", help="SampleData answers as without a network")
    parser.add_argument("--strict-qt", action="store_true", help="made-up Qt names raise AttributeError")
    parser.add_argument("--parent-pid", type=int, help="end when this process is gone")
    return parser.parse_args(words)


def _redirect_stdout():
    """Send all that is written to stdout, by C++ too, to stderr.  Returns the real stdout."""
    real = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = sys.stderr
    return real


def _draw_shown_views():
    import slicer

    for widget in slicer.app.layoutManager().shown():
        if widget.renderView() is not None:
            widget.renderView().renderIfNeeded()


def _serve(arguments, folder, stdout, sock):
    """Start everything and run until told to stop.  Returns the exit code."""
    started = time.monotonic()
    from . import startup
    from .web_server import WebServer

    loop.stop_on_signals()
    startup.start(folder, with_data=not arguments.no_data)
    made_up.clear()  # what the start itself touched says nothing about the user's code
    made_up.strict = arguments.strict_qt
    try:
        server = WebServer(sock, not arguments.no_exec)
    except OSError as error:  # somebody else was faster to listen on the reserved port
        raise checks.port_taken(arguments.port, error) from error
    loop.idle.append(_draw_shown_views)

    def ready():
        host, port = server.sock.getsockname()
        print(f"The practice Slicer started in {time.monotonic() - started:.2f} s.", file=sys.stderr, flush=True)
        print(f"ready on {host}:{port}", file=stdout, flush=True)

    loop.post(ready)
    return loop.run()


def main(words=None):
    """Run the practice Slicer; ends the process."""
    arguments = _arguments(words)
    faulthandler.enable(sys.stderr)
    folder = None

    def clean_up():
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    code = 1
    try:
        checks.check_packages()
        checks.check_drawing()
        sock = checks.reserve_port(arguments.port)
        folder = tempfile.mkdtemp(prefix="practice-slicer-")
        if arguments.parent_pid is not None:
            parent_watch.end_with(arguments.parent_pid, clean_up)
        code = _serve(arguments, folder, _redirect_stdout(), sock)
    except checks.CannotStart as reason:
        print(reason, file=sys.stderr)
        code = reason.code
    except SystemExit:
        code = 0  # told to stop while starting
    except BaseException:
        traceback.print_exc()
    finally:
        clean_up()
        sys.stderr.flush()
        os._exit(code)  # the destructors of VTK and Mesa may crash at the end; nothing is left to be saved


if __name__ == "__main__":
    main()
