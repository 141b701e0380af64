"""Starts Slicer's Web Server so that only this computer reaches it; given to Slicer as its --python-script.

Slicer's own start binds all network interfaces, and with exec on, whoever reaches the port runs code.  So the server
object is made here, from Slicer's own classes, with the address 127.0.0.1; what it is bound to is read back from the
socket before the first request can be answered.  Nothing is written into the person's settings: the module's panel,
which does that, is never made.

Ports are tried in turn.  Slicer's own search for a free one ends after one step, and on some systems an address that
is in use can be bound a second time; so each port is first tried by a connection, and bound without sharing.

The outcome goes into the JSON file that SLICER_AI_AGENT_REPORT names, written beside it and renamed, so that a reader
finds either nothing or all of it.  SLICER_AI_AGENT_PORTS holds the first and the last port, as in `2016-2026`.
"""


def _slicer_ai_agent_start():
    import inspect
    import json
    import os
    import socket
    import socketserver

    import slicer

    LOOPBACK = "127.0.0.1"
    CONNECT_LIMIT = 0.5  # seconds; on this computer a listening port accepts at once

    class CannotStart(Exception):
        def __init__(self, kind, message):
            super().__init__(message)
            self.kind = kind

    # Taken out of the environment, so that programs which Slicer starts do not inherit them.
    report_file = os.environ.pop("SLICER_AI_AGENT_REPORT", "")
    ports = os.environ.pop("SLICER_AI_AGENT_PORTS", "2016-2026")

    def report(facts):
        draft = report_file + ".part"
        with open(draft, "w", encoding="utf-8") as stream:
            json.dump(facts, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, report_file)

    def known(function, arguments):
        """Only those arguments that this version of Slicer knows."""
        names = inspect.signature(function).parameters
        return {name: value for name, value in arguments.items() if name in names}

    def web_server_module():
        try:
            import WebServer
        except ImportError as error:
            raise CannotStart("NoWebServer", f"this Slicer has no Web Server module ({error})") from error
        if not hasattr(slicer.modules, "webserver"):
            raise CannotStart("NoWebServer", "the Web Server module of this Slicer is switched off")
        return WebServer

    def make_logic(module):
        wanted = {
            "enableSlicer": True,
            "enableExec": True,
            "enableDICOM": False,
            "enableStaticPages": False,
            "enableCORS": False,
        }
        given = known(module.WebServerLogic.__init__, wanted)
        missing = [name for name in ("enableExec", "enableDICOM", "enableStaticPages") if name not in given]
        if missing:
            raise CannotStart("NoWebServer", "the Web Server of this Slicer cannot be set up: no " + ", ".join(missing))
        return module.WebServerLogic(**given)

    def loopback_class(module):
        class LoopbackServer(module.SlicerHTTPServer):
            # Where it means "share the port" (Windows), an address in use must not be taken over.
            allow_reuse_address = os.name == "posix"
            allow_reuse_port = False

            def server_bind(self):
                if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
                # Not that of HTTPServer: it asks the name service for this computer's name, which may take long.
                socketserver.TCPServer.server_bind(self)
                self.server_name, self.server_port = self.server_address[:2]

        return LoopbackServer

    def listens(port):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.settimeout(CONNECT_LIMIT)
            return probe.connect_ex((LOOPBACK, port)) == 0

    def make_server(server_class, logic, port):
        """The listening server, or None when the port is in use."""
        wanted = {
            "server_address": (LOOPBACK, port),
            "requestHandlers": logic.requestHandlers,
            "docroot": logic.docroot,
            "logMessage": logic.logMessage,
            "enableCORS": False,
        }
        if listens(port):
            return None
        try:
            server = server_class(**known(server_class.__init__, wanted))
        except OSError as error:
            print(f"Port {port} cannot be used: {error}")
            return None
        host = server.socket.getsockname()[0]
        if host != LOOPBACK:
            server.socket.close()
            raise CannotStart(
                "NotLoopback",
                f"the Web Server would have listened on {host} instead of {LOOPBACK}; it was stopped at once",
            )
        return server

    def start():
        version = str(slicer.app.applicationVersion)
        module = web_server_module()
        logic = make_logic(module)
        server_class = loopback_class(module)
        first, last = (int(part) for part in ports.split("-"))
        for port in range(first, last + 1):
            server = make_server(server_class, logic, port)
            if server is not None:
                break
        else:
            raise CannotStart("PortsTaken", f"all ports from {first} to {last} are in use")
        try:
            server.start()
        except BaseException:
            server.socket.close()
            raise
        logic.server, logic.port, logic.serverStarted = server, port, True
        # Kept for as long as Slicer runs; `slicer.aiAgentWebServer.stop()` in its Python console stops it.
        slicer.aiAgentWebServer = logic
        return {"ok": True, "port": port, "pid": os.getpid(), "version": version}

    try:
        facts = start()
    except CannotStart as reason:
        facts = {"ok": False, "kind": reason.kind, "message": str(reason)}
    except Exception as error:
        import traceback

        traceback.print_exc()
        facts = {"ok": False, "kind": "Failed", "message": f"{type(error).__name__}: {error}"}
    if report_file:
        report(facts)
    print("Slicer AI Agent: " + json.dumps(facts), flush=True)


_slicer_ai_agent_start()
del _slicer_ai_agent_start
