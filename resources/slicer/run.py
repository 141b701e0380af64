"""One guarded run of foreign code: checkpoint, execute once, compare, and put back after a failure."""
import ast
import builtins
import linecache
import sys
import time
import traceback
import types

import slicer

from slicer_ai_agent_helper import audit, checkpoint, dialogs, flow, guard, protect, scene, text

store = checkpoint.Store()
_console = {}
_perf_counter = time.perf_counter
_true_import = builtins.__import__
_MISSING = object()


def namespace():
    """The namespace of Slicer's Python console, with the names that the console has."""
    main = sys.modules["__main__"].__dict__
    # The practice Slicer is itself a script: its variables are not the console's.
    names = _console if scene.is_practice() and "__file__" in main else main
    names.setdefault("__name__", "__main__")
    names["__builtins__"] = builtins
    for name in ("vtk", "qt", "ctk"):
        if name not in names:
            try:
                names[name] = __import__(name)
            except ImportError:
                pass
    names.setdefault("slicer", slicer)
    for name in dir(slicer.util):
        if not name.startswith("_") and not isinstance(getattr(slicer.util, name), types.ModuleType):
            names.setdefault(name, getattr(slicer.util, name))
    return names


class Program:
    """The code of one run, compiled so that a trailing expression is evaluated once and its value is kept."""

    def __init__(self, run_id, code):
        self.filename = "<slicer-ai-agent run %s>" % run_id
        # Everything that Python takes as a line end, so that its line numbers and ours agree.
        code = code.replace("\r\n", "\n").replace("\r", "\n")
        if code.startswith("\ufeff"):
            code = code[1:]
        linecache.cache[self.filename] = (len(code), None, code.splitlines(True), self.filename)
        tree = ast.parse(code, self.filename)
        last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = ast.Module(tree.body[:-1] if last is not None else tree.body, tree.type_ignores)
        self.body = compile(body, self.filename, "exec", dont_inherit=True)
        self.last = compile(ast.Expression(last.value), self.filename, "eval", dont_inherit=True) if last else None
        self.sets_result = any(
            isinstance(part, ast.Name) and part.id == "result" and isinstance(part.ctx, ast.Store)
            for part in ast.walk(tree)
        )

    def run(self, names):
        names.pop("__execResult", None)
        exec(self.body, names)
        value = eval(self.last, names) if self.last is not None else None
        if value is not None:
            return value
        if names.get("__execResult", _MISSING) is not _MISSING:
            return names["__execResult"]
        return names.get("result") if self.sets_result else None


def restore():
    """Puts back the helper's own names; `protect.seal` fills it in."""


class Execution:
    """One program under its watchdog and its grants: what came of it."""

    def __init__(self):
        self.value = self.error = self.grants = None
        self.refused, self.repaired, self.touched, self.threads, self.keep = [], [], [], 0, guard.armed()
        self.dialogs = dialogs.Dialogs()

    def go(self, program, names, watchdog, wanted):
        whole, memory = protect.Whole(), guard.MemoryLimit()
        exchanged, modal = protect.Exchanged(self.dialogs.replacements()), dialogs.ModalWatch(self.dialogs, watchdog)
        if wanted is not None:
            names["__builtins__"] = {**vars(builtins), "__import__": audit.importer(_true_import)}
        restore_helper = restore
        exchanged.open(names)
        modal.start()
        memory.open()
        touched = set(touched_names())  # what the set-up looked for is not the code's
        try:
            self._go(program, names, watchdog, wanted)
        except BaseException as late:  # the watchdog's exception, which came when the code had just ended
            self.error = self.error or late
        restore_helper()  # first: what follows needs the helper and Python's own functions whole
        guard.repair_builtins()
        guard.disarm_all(self.keep)
        self.touched = [name for name in dict.fromkeys(touched_names()) if name not in touched]
        memory.close()
        modal.stop()
        exchanged.close()
        self.repaired = whole.put_back()
        names["__builtins__"] = builtins
        self.refused, self.threads = audit.end(self.grants)

    def _go(self, program, names, watchdog, wanted):
        try:
            watchdog.start()  # before the hold: its thread is one of those that were there before
            self.grants = audit.begin(wanted, program.filename)
            self.value = program.run(names)
        except BaseException as raised:
            self.error = raised

    def notes(self):
        """What the person should know beside the result."""
        notes = []
        if self.repaired:
            notes.append("The code replaced functions that Slicer and Python share; they were put back: %s" % ", ".join(self.repaired))
        if self.threads:
            count = "a thread" if self.threads == 1 else "%d threads" % self.threads
            notes.append("The code left %s running in Slicer." % count)
        return notes


def error_report(error, filename):
    """RunError of an exception: only frames of the agent's code and below."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != filename:
        frames = frames.tb_next
    line, walk = None, frames
    while walk is not None:
        if walk.tb_frame.f_code.co_filename == filename:
            line = walk.tb_lineno
        walk = walk.tb_next
    if isinstance(error, SyntaxError) and error.filename == filename:
        line = error.lineno
    try:
        told = "".join(traceback.format_exception(type(error), error, frames))
    except BaseException:
        told = "the traceback cannot be shown"
    name = type(error).__name__
    return {"type": text.clean(name), "message": message(error), "line": line, "traceback": text.clip(told, 8000)}


def message(error):
    if isinstance(error, guard.TimeLimit):
        return "the run took longer than its time limit"
    if isinstance(error, guard.Stopped):
        return "the run was stopped"
    if isinstance(error, SystemExit):
        return "the code called exit (%s); Slicer goes on" % text.describe(error.code)
    return text.message_of(error)


def touched_names():
    """Names of the full application that the practice Slicer only pretends to have, so far."""
    app = slicer.app
    if not scene.is_practice() or getattr(type(app), "practiceTouchedNames", None) is None:
        return []
    names = app.practiceTouchedNames
    try:
        return [str(name) for name in (names() if callable(names) else names)]
    except Exception:
        return []


def run(request):
    """RunRequest → RunOutcome."""
    run_id = str(request["id"])
    before = scene.Moment()
    point = checkpoint.Checkpoint(run_id, before, store.last())
    surroundings = guard.Surroundings()
    reply = {"id": run_id, "value": None, "error": None}
    try:
        program = Program(run_id, request["code"])
    except BaseException as error:  # also MemoryError and RecursionError of the parser
        reply["error"] = error_report(error, "<slicer-ai-agent run %s>" % run_id)
        reply.update(
            stdout="", stderr="", vtk=[], warnings=[], log=[], refused=[], dialogs=[], touched=[], duration_ms=0.0, ok=False,
        )
        return finish(reply, request, before, point, before)
    watchdog = guard.Watchdog(request["timeout_ms"] / 1000.0, request.get("stop_path"), program.filename)
    names, execution, kept = namespace(), Execution(), None
    if request.get("flow"):
        names, kept = flow.namespace(names, request["flow"])
    surroundings.open()
    start = _perf_counter()
    try:
        execution.go(program, names, watchdog, flow.grants(request))
    finally:
        reply["duration_ms"] = (_perf_counter() - start) * 1000
        surroundings.close()
    value, error = execution.value, execution.error
    if error is not None:
        reply["error"] = error_report(error, program.filename)
        error.__traceback__ = None
    else:
        reply["value"] = text.safe(value)
    reply["flow"] = text.safe(kept)
    reply.update(
        stdout=surroundings.out.text(), stderr=surroundings.err.text(), vtk=surroundings.vtk.messages,
        warnings=surroundings.warned, log=surroundings.log.lines + execution.notes(), refused=execution.refused,
        dialogs=execution.dialogs.told,
        touched=execution.touched,
    )
    first = next((one["text"] for one in reply["vtk"] if one["kind"] == "error"), None)
    if error is None and first is not None:
        reply["error"] = {"type": "VtkError", "message": first, "line": None, "traceback": ""}
    reply["ok"] = reply["error"] is None
    return finish(reply, request, before, point, scene.Moment())


def finish(reply, request, before, point, after):
    reply["before"], reply["after"] = before.snapshot, after.snapshot
    reply["diff"] = scene.diff(before.snapshot, after.snapshot)
    point.close(after)
    reply["restored"], reply["undoable"] = None, False
    if not reply["ok"] and request.get("restore_on_failure"):
        reply["restored"] = {**checkpoint.restored(point), "also_undone": []}
    else:
        store.add(point)
        reply["undoable"] = True
    return reply
