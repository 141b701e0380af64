"""The one entrance: a request as JSON text in, a reply as plain data out.

Nothing that happens here may reach the request handler of Slicer's Web Server: it answers an exception with a bare
text, and lets `SystemExit` end the application. Replies carry the request's id because code that pumps events lets
another request run inside the first, and Slicer then gives both the same reply; the last replies are kept so that a
swapped one can be asked for again.
"""
import json
from collections import OrderedDict

from slicer_ai_agent_helper import guard, plain, run, samples, scene, text

_replies = OrderedDict()
_running = []
_loads = json.loads


def call(request_text):
    request, key = {}, None
    try:
        request = _loads(request_text)
        key = request.get("request")
        reply = {"request": key, "ok": True, "result": answer(request)}
    except guard.Stopped:
        reply = failure(key, "Stopped", "the run was stopped")
    except guard.TimeLimit:
        reply = failure(key, "TimeLimit", "the run took longer than its time limit")
    except BaseException as error:
        reply = failure(key, type(error).__name__, text.message_of(error))
    try:
        reply = text.clean_reply(reply)
    except BaseException as error:
        reply = failure(key, type(error).__name__, "the reply could not be written as JSON")
    if request.get("action") != "reply":
        _replies[key] = reply
        while len(_replies) > 8:
            _replies.popitem(last=False)
    return reply


def failure(key, kind, message):
    return {"request": key, "ok": False, "error": {"type": kind, "message": message}}


class Busy(Exception):
    """Asked for something while a run is going on (the code pumps events)."""


def answer(request):
    action = request.get("action")
    if action == "reply":
        return _replies.get(request.get("of"))
    if action == "status":
        return {**scene.status(), "running": _running[-1] if _running else None}
    if _running:
        raise Busy("run %s is still going on" % _running[-1])
    if action == "snapshot":
        return scene.Moment().snapshot
    if action == "run":
        return guarded(request)
    if action == "undo":
        return run.store.undo(str(request["run"]))
    if action == "node_properties":
        return scene.node_properties(request["ids"])
    if action == "list_nodes":
        return scene.list_nodes(request.get("class"), request.get("name"))
    if action == "undo_last":
        return plain.undo_last(request.get("include_later") is True)
    if action == "load_sample":
        return samples.load(str(request["name"]))
    raise ValueError("unknown action %r" % (action,))


def guarded(request):
    _running.append(str(request["run"]["id"]))
    keep = guard.armed()
    try:
        return run.run(request["run"])
    finally:
        _running.pop()
        guard.disarm_all(keep)
