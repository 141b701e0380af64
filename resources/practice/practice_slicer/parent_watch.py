"""Ends this process when the one that started it is gone, so that no orphan stays behind.

A thread asks once a second, since the event loop may be busy with somebody's code.
"""

import ctypes
import os
import sys
import threading
import time

INTERVAL = 1.0  # seconds
WINDOWS_SYNCHRONIZE, WINDOWS_WAIT_TIMEOUT = 0x00100000, 0x102


def _posix_check(pid):
    child_of_it = os.getppid() == pid

    def alive():
        if child_of_it:  # an ended parent that nobody has waited for still has its number
            return os.getppid() == pid
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    return alive


def _windows_check(pid):
    kernel = ctypes.windll.kernel32
    handle = kernel.OpenProcess(WINDOWS_SYNCHRONIZE, False, pid)
    return lambda: bool(handle) and kernel.WaitForSingleObject(handle, 0) == WINDOWS_WAIT_TIMEOUT


def end_with(pid, clean_up):
    """End this process, with exit code 0, within about a second after process `pid` is gone; call clean_up() first."""
    alive = (_windows_check if os.name == "nt" else _posix_check)(pid)

    def watch():
        while alive():
            time.sleep(INTERVAL)
        print(f"The practice Slicer ends because process {pid}, which it belongs to, is gone.", file=sys.stderr)
        clean_up()
        sys.stderr.flush()
        os._exit(0)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()
