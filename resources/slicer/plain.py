"""Code of any MCP client, run as Slicer's own exec route would run it, with an answer that cannot be mixed up.

The names are those of the request handler and stay from one call to the next; what the code leaves in `__execResult`
comes back; what it raises is said in the same words. Three things are better than on the bare route. The answer carries
the call's id, and the code's `__execResult` is kept apart, so a request that runs inside another one (code that pumps
events) cannot take its place. `SystemExit` and the like are reported instead of ending Slicer. And the call can be
stopped. A capture of what is printed and a checkpoint are made only when they are asked for: both cost time.
"""
import json
import linecache
import os
import time
import types

from slicer_ai_agent_helper import checkpoint, guard, run, scene, text

RESULT = "__execResult"
# With one of these, code can reach the result by a name that is made while it runs.
DYNAMIC = {"globals", "locals", "vars", "exec", "eval", "__dict__", "__builtins__"}
# Marks the checkpoints of these calls, so that an undo here never takes back a run of somebody else.
PREFIX = "mcp-"
_loads, _dumps, _perf_counter = json.loads, json.dumps, time.perf_counter
_MISSING = object()
_since = [0]


class Program:
    """Code, compiled; `own` is the name under which its `__execResult` is kept, if it can be kept apart."""

    def __init__(self, code, call):
        self.filename = "<slicer-ai-agent call %s>" % call
        self.own = None
        self.code = compile(code[1:] if code.startswith("\ufeff") else code, self.filename, "exec", dont_inherit=True)
        names = self.code.co_names
        # Functions would look for the name as it was written.
        inner = any(type(part) is types.CodeType and names_result(part) for part in self.code.co_consts)
        if RESULT in names and not inner and "." + RESULT not in code and not DYNAMIC.intersection(names):
            self.own = RESULT + "_" + call
            self.code = self.code.replace(co_names=tuple(self.own if name == RESULT else name for name in names))

    def run(self, names):
        kept = self.own or RESULT
        names[kept] = {}
        try:
            exec(self.code, names)
            value = names.get(kept, _MISSING)
        finally:
            if self.own:
                names.pop(self.own, None)
        if value is _MISSING:
            raise NameError("name '%s' is not defined" % RESULT)
        return value


def show_source(filename, code):
    """Lets tracebacks show the lines of the code; forgotten after the call."""
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)


def names_result(code):
    if RESULT in code.co_names:
        return True
    return any(type(part) is types.CodeType and names_result(part) for part in code.co_consts)


class Call:
    """One call: the code under its watchdog, and what came of it."""

    def __init__(self, request):
        self.request, self.key = request, request["call"]
        self.program = self.watchdog = self.surroundings = self.error = None
        self.value, self.keep = None, guard.armed()

    def go(self, names):
        if self.request.get("capture"):
            show_source(self.program.filename, self.request["code"])
            self.surroundings = guard.Surroundings()
            self.surroundings.open()
        start = _perf_counter()
        try:
            self._go(names)
        except BaseException as late:  # the watchdog's exception, which came when the code had just ended
            self.error = self.error or late
        guard.repair_builtins()
        guard.disarm_all(self.keep)
        self.duration_ms = (_perf_counter() - start) * 1000
        if self.surroundings is not None:
            self.surroundings.close()

    def _go(self, names):
        try:
            limit = self.request.get("limit_s")
            self.watchdog = guard.Watchdog(limit, self.request.get("stop"), self.program.filename)
            self.watchdog.start_shared()
            self.value = self.program.run(names)
        except BaseException as raised:
            self.error = raised

    def compile(self):
        try:
            self.program = Program(self.request["code"], self.key)
        except BaseException as error:  # also MemoryError and RecursionError of the parser
            self.error = error

    def reply(self):
        if self.error is None and (self.request.get("capture") or self.request.get("undoable")):
            # Slicer's handler would lose the report together with a value that it cannot write.
            try:
                _dumps(self.value)
            except Exception as error:
                self.error, self.value = error, None
        reply = {"call": self.key, "ok": self.error is None}
        if self.error is None:
            reply["value"] = self.value
        else:
            reply["message"] = self.message()
        if self.request.get("capture"):
            reply["report"] = self.report()
        return reply

    def message(self):
        error = self.error
        if isinstance(error, guard.TimeLimit):
            return "the code took longer than %g s and was stopped" % self.request["limit_s"]
        if isinstance(error, (guard.Stopped, SystemExit)):
            return run.message(error)
        if isinstance(error, SyntaxError) and error.filename == "<slicer-ai-agent call %s>" % self.key:
            error.filename = "<string>"
        said = text.message_of(error, 1 << 20)
        if self.program is not None and self.program.own:
            said = said.replace(self.program.own, RESULT)
        return said or type(error).__name__

    def report(self):
        report = {"stdout": "", "stderr": "", "vtk": [], "warnings": [], "log": [], "error": None, "duration_ms": 0.0}
        if self.surroundings is not None:
            kept = self.surroundings
            report.update(
                stdout=kept.out.text(), stderr=kept.err.text(), vtk=kept.vtk.messages, warnings=kept.warned,
                log=kept.log.lines, duration_ms=round(self.duration_ms, 3),
            )
        if self.error is not None:
            report["error"] = run.error_report(self.error, self.program.filename if self.program else "<string>")
            report["error"]["message"] = self.message()
        return text.clean_reply(report)


def execute(names, request_text):
    """Runs one call in `names`, the namespace of the request handler; never raises."""
    call = Call(_loads(request_text))
    call.compile()
    if call.program is None:
        return call.reply()
    if call.request.get("undoable"):
        return with_checkpoint(call, names)
    _since[0] += 1
    call.go(names)
    return finished(call)


def finished(call):
    reply = call.reply()
    linecache.cache.pop(call.program.filename, None)
    if call.error is not None:
        call.error.__traceback__ = None
        stop = call.request.get("stop")
        if stop and isinstance(call.error, guard.Stopped):
            try:
                os.remove(stop)
            except OSError:
                pass
    return reply


def with_checkpoint(call, names):
    before = scene.Moment()
    point = checkpoint.Checkpoint(PREFIX + call.key, before, run.store.last())
    call.go(names)
    after = scene.Moment()
    point.close(after)
    reply = finished(call)
    reply["changes"] = text.clean_reply(scene.diff(before.snapshot, after.snapshot))
    keep(point)
    return reply


def keep(point):
    """Keeps a checkpoint if there is anything to take back."""
    if point.touched or point.added or point.view_keys or point.new_folders or point.moved:
        run.store.add(point)
        _since[0] = 0


def undo_last(include_later):
    """Undoes the last call that has a checkpoint; what ran after it without one makes that a question."""
    points = run.store.items
    own = [point for point in points if point.run_id.startswith(PREFIX)]
    if not own:
        return {"undone": False, "why": "nothing", "later": 0}
    others = len(points) - 1 - points.index(own[-1])
    later = _since[0] + others
    if later and not include_later:
        return {"undone": False, "why": "later", "later": later}
    before = scene.Moment()
    report = run.store.undo(own[-1].run_id)
    _since[0] = 0
    changes = scene.diff(before.snapshot, scene.Moment().snapshot)
    return {"undone": True, "complete": report["complete"], "missing": report["missing"], "later": later, "changes": changes}
