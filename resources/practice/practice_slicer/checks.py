"""What must be there before anything is imported or drawn, checked so that people get a sentence and not a crash.

Without a library to draw with, VTK ends the process with a segmentation fault at the first picture; without a package
Python ends with a traceback.  Each of these has its own exit code instead.
"""

import ctypes
import importlib.util
import os
import socket
import sys

EXIT_NO_OPENGL = 4
EXIT_NO_PACKAGE = 5
EXIT_PORT_TAKEN = 6

HOST = "127.0.0.1"

PACKAGES = (  # module to import, package to install
    ("slicer_core", "slicer-core"),
    ("vtkmodules", "vtk"),
    ("numpy", "numpy"),
    ("PIL", "pillow"),
)
# Libraries that VTK can draw with off screen, and the render window class for each.
DRAWING_LIBRARIES = (
    ("libEGL.so.1", "vtkEGLRenderWindow"),
    ("libOSMesa.so.8", "vtkOSOpenGLRenderWindow"),
    ("libOSMesa.so.6", "vtkOSOpenGLRenderWindow"),
)


class CannotStart(Exception):
    """A reason not to start: a sentence for people and an exit code."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def check_packages():
    """Raise CannotStart when a Python package is missing."""
    missing = [package for module, package in PACKAGES if importlib.util.find_spec(module) is None]
    if missing:
        names = " and ".join(missing)
        raise CannotStart(
            EXIT_NO_PACKAGE,
            f"The practice Slicer cannot start: the Python package {names} is not installed "
            f"(install it with: {sys.executable} -m pip install {' '.join(missing)}).",
        )


def _loads(library):
    try:
        ctypes.CDLL(library)
        return True
    except OSError:
        return False


def check_drawing():
    """Choose the library to draw with; raise CannotStart when there is none.  Only Linux lacks one by default."""
    if not sys.platform.startswith("linux"):
        return
    for library, window_class in DRAWING_LIBRARIES:
        if _loads(library):
            os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", window_class)
            return
    raise CannotStart(
        EXIT_NO_OPENGL,
        "The practice Slicer cannot draw here because neither EGL nor OSMesa is installed (install one with: "
        "apt-get install -y libegl1 libegl-mesa0 libgl1-mesa-dri, or: apt-get install -y libosmesa6).",
    )


def port_taken(port, error):
    """The CannotStart for a port that cannot be had."""
    return CannotStart(
        EXIT_PORT_TAKEN,
        f"The practice Slicer cannot listen on port {port}: {getattr(error, 'strerror', None) or error} "
        "(end what uses it, or start with --port 0).",
    )


def reserve_port(port):
    """A socket bound to the port on 127.0.0.1 (0: any free one); it does not listen yet.  Raises CannotStart."""
    sock = socket.socket()
    if os.name == "posix":  # elsewhere this would let two servers share a port
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except (OSError, OverflowError) as error:
        sock.close()
        raise port_taken(port, error) from error
    return sock
