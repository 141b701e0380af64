"""A stand-in for the module of this name in 3D Slicer: the same classes, signatures and habits in binding a port.

Requests are answered by the practice Slicer.  What must be as in Slicer for the start-up script: `SlicerHTTPServer` takes
the address as its first argument, `WebServerLogic.start` binds all interfaces, `findFreePort` gives up after one step, and
making the panel writes settings.
"""

import os
import socket
from http.server import HTTPServer

import qt
import slicer
from practice_slicer import web_server
from practice_slicer.web_api import Api


class WebServerWidget:
    """The panel; the start-up script must not make it."""

    def __init__(self, parent=None):
        raise AssertionError("the panel of the Web Server writes settings and must not be made")


class SlicerRequestHandler:
    def __init__(self, enableExec=False):
        self.api = Api(enableExec)


class OtherRequestHandler:
    """Stands for the handlers of DICOM and of static pages, which must be off."""

    def __init__(self, *_):
        raise AssertionError("only Slicer's own API may be on")


class SlicerHTTPServer(HTTPServer):
    def __init__(
        self,
        server_address=("", 2016),
        requestHandlers=None,
        docroot=".",
        logMessage=None,
        certfile=None,
        keyfile=None,
        enableCORS=False,
    ):
        if os.environ.get("FAKE_SLICER") == "everywhere":
            server_address = ("", server_address[1])
        HTTPServer.__init__(self, server_address, SlicerHTTPServer.DummyRequestHandler)
        assert not enableCORS
        self.requestHandlers = requestHandlers or []
        self.api = self.requestHandlers[0].api
        self.connections = set()
        self.logMessage = logMessage
        self.notifier = None
        self.socket.settimeout(5.0)

    class DummyRequestHandler:
        pass

    def onServerSocketNotify(self, fileno):
        web_server._Connection(self, self.socket.accept()[0])

    def start(self):
        self.logMessage("listening")
        self.notifier = qt.QSocketNotifier(self.socket.fileno(), qt.QSocketNotifier.Read)
        self.notifier.connect("activated(int)", self.onServerSocketNotify)

    def stop(self):
        self.socket.close()
        if self.notifier:
            self.notifier.disconnect("activated(int)", self.onServerSocketNotify)
        self.notifier = None

    @classmethod
    def findFreePort(cls, port=2016):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                port += 1
        return port


class WebServerLogic:
    def __init__(
        self,
        port=None,
        enableSlicer=True,
        enableExec=False,
        enableDICOM=True,
        enableStaticPages=True,
        requestHandlers=None,
        logMessage=None,
        enableCORS=False,
    ):
        if logMessage:
            self.logMessage = logMessage
        self.port = port or 2016
        self.enableCORS = enableCORS
        self.server = None
        self.serverStarted = False
        self.docroot = os.path.dirname(slicer.modules.webserver.path.encode()) + b"/Resources/docroot"
        self.requestHandlers = [SlicerRequestHandler(enableExec)] if enableSlicer else []
        for enabled in (enableDICOM, enableStaticPages):
            if enabled:
                self.requestHandlers.append(OtherRequestHandler())

    def logMessage(self, *args):
        """As in the older versions, where it is a method."""

    def start(self):
        self.stop()
        self.port = SlicerHTTPServer.findFreePort(self.port)
        self.server = SlicerHTTPServer(
            requestHandlers=self.requestHandlers,
            docroot=self.docroot,
            server_address=("", self.port),
            logMessage=self.logMessage,
            enableCORS=self.enableCORS,
        )
        self.server.start()
        self.serverStarted = True

    def stop(self):
        if self.server:
            self.server.stop()
        self.serverStarted = False
