"""Dialogs that a run would open: answered by policy, and told.

A dialog keeps Slicer's main thread, and so the run, waiting for somebody who does not know that a program asked. The
helpers of `slicer.util` and Qt's ready-made boxes are therefore answered at once while code runs: a message is taken as
read, a question as "no" (nobody agreed), a file or text dialog as closed. A dialog of the code's own is left to the person;
its title is told, and at the time limit or on a stop it is closed like by its close button, so that the run can end.
"""
import time

import slicer

from slicer_ai_agent_helper.text import clip, describe

OK, CANCEL, NO = 0x400, 0x400000, 0x10000
MESSAGES = ("infoDisplay", "warningDisplay", "errorDisplay", "delayDisplay")
QUESTIONS = ("confirmOkCancelDisplay", "confirmYesNoDisplay", "confirmRetryCloseDisplay")
BOXES = {"information": "message", "warning": "message", "critical": "message", "about": "message", "question": "question"}
FILES = {
    "getOpenFileName": "", "getOpenFileNames": (), "getSaveFileName": "", "getExistingDirectory": "",
}
INPUTS = {"getText": "", "getMultiLineText": "", "getItem": "", "getInt": 0, "getDouble": 0.0}
KEPT = 20
PERIOD_MS = 200
_monotonic = time.monotonic


class Dialogs:
    """What a run asked or said in dialogs."""

    def __init__(self):
        self.told = []

    def tell(self, kind, arguments, answer, title=""):
        words = [argument for argument in arguments if isinstance(argument, str)]
        if len(self.told) < KEPT:
            entry = {"kind": kind, "title": clip(title, 200), "text": clip(" — ".join(words), 2000), "answer": answer}
            self.told.append(entry)
            return entry
        return None

    def replacements(self):
        """(holder, name, function) of everything that is answered here."""
        out = []
        util = slicer.util
        for name in MESSAGES:
            out.append((util, name, self._message(name)))
        for name in QUESTIONS:
            out.append((util, name, self._question(name)))
        out.append((util, "messageBox", self._box))
        try:
            import qt
        except ImportError:
            return out
        for name, kind in BOXES.items():
            out.append((getattr(qt, "QMessageBox", None), name, self._qt_box(kind)))
        for name, empty in FILES.items():
            out.append((getattr(qt, "QFileDialog", None), name, self._closed("file", empty)))
        for name, empty in INPUTS.items():
            out.append((getattr(qt, "QInputDialog", None), name, self._closed("input", empty)))
        return [one for one in out if one[0] is not None]

    def _message(self, name):
        def message(text="", *more, **named):
            self.tell("message", [text], "read", str(named.get("windowTitle") or ""))
            return None

        message.__name__ = name
        return message

    def _question(self, name):
        def question(text="", *more, **named):
            self.tell("question", [text], "no", str(named.get("windowTitle") or ""))
            return False

        question.__name__ = name
        return question

    def _box(self, text="", *more, **named):
        buttons = named.get("standardButtons")
        choice = buttons is not None and not same_button(buttons, OK)
        self.tell("question" if choice else "message", [text], "cancelled" if choice else "read", str(named.get("windowTitle") or ""))
        return CANCEL if choice else OK

    def _qt_box(self, kind):
        def box(*arguments, **named):
            words = [one for one in arguments if isinstance(one, str)]
            title = words.pop(0) if len(words) > 1 else ""
            self.tell(kind, words, "no" if kind == "question" else "read", title)
            return NO if kind == "question" else OK

        return box

    def _closed(self, kind, empty):
        def closed(*arguments, **named):
            words = [one for one in arguments if isinstance(one, str)]
            self.tell(kind, words[1:2], "cancelled", words[0] if words else "")
            return empty

        return closed


def same_button(value, number):
    try:
        return int(value) == number
    except (TypeError, ValueError):
        return False


class ModalWatch:
    """Looks for a modal dialog of the code's own while its event loop runs. Inside it no Python of the run goes on, so a
    timer of Qt does the looking."""

    def __init__(self, dialogs, watchdog):
        self.dialogs, self.watchdog, self.timer = dialogs, watchdog, None
        self.entry = self.since = self.title = None

    def start(self):
        try:
            import qt

            self.timer = qt.QTimer()
            self.timer.setInterval(PERIOD_MS)
            self.timer.timeout.connect(self.look)
            self.timer.start()
        except Exception:  # without Qt there are no dialogs
            self.timer = None

    def look(self):
        """One look; never raises, for Qt calls it."""
        try:
            dialog = active_modal()
            if dialog is None:
                self.entry = self.title = None
                return
            title = title_of(dialog)
            if title != self.title:
                self.title, self.since = title, _monotonic()
                self.entry = self.dialogs.tell("dialog", [], "left to the person", title)
            if self.entry is not None:
                self.entry["text"] = "open for %.0f s" % (_monotonic() - self.since)
            if self.watchdog.reason is not None:
                if self.entry is not None:
                    self.entry["answer"] = "closed, because the run was over"
                dialog.reject() if hasattr(dialog, "reject") else dialog.close()
        except Exception:
            return

    def stop(self):
        if self.timer is not None:
            try:
                self.timer.stop()
            except Exception:
                return


def active_modal():
    """The dialog that keeps the person, and so perhaps Slicer, waiting; None when there is none."""
    try:
        import qt

        return qt.QApplication.activeModalWidget()
    except Exception:  # a Slicer without Qt, and one that only pretends to have it
        return None


def title_of(dialog):
    title = getattr(dialog, "windowTitle", "")
    try:
        title = title() if callable(title) else title
    except Exception:
        title = describe(title)
    return clip(str(title) or dialog.__class__.__name__, 200)
