"""Stand-in dialogs.  Nobody can click here, so they answer by themselves: message boxes say OK (a question: No),
file and input dialogs give an empty answer and are noted in `made_up`.  What a box said goes to stderr.
"""

import sys

from . import made_up
from .qt_widgets import QWidget


class QDialog(QWidget):
    """A dialog; exec_() gives Rejected and is noted."""

    Accepted, Rejected = 1, 0

    def exec_(self):
        made_up.note(f"{type(self).__name__}.exec_ (no one can answer: Rejected)")
        return 0

    exec = exec_

    def accept(self):
        self.hide()

    reject = accept


class QProgressDialog(QDialog):
    """A progress dialog that is never cancelled."""

    _defaults = {
        "value": 0,
        "maximum": 100,
        "minimum": 0,
        "labelText": "",
        "wasCanceled": False,
        "minimumDuration": 0,
    }


class QMessageBox(QDialog):
    """Writes its text to stderr and answers OK; a question is answered No."""

    NoIcon, Information, Warning, Critical, Question = 0, 1, 2, 3, 4
    Ok, Open, Save, Cancel, Close, Yes, No, Retry, Ignore, Abort, Apply = (
        0x400,
        0x2000,
        0x800,
        0x400000,
        0x200000,
        0x4000,
        0x10000,
        0x80000,
        0x100000,
        0x40000,
        0x2000000,
    )
    AcceptRole, RejectRole, YesRole, NoRole, ActionRole = 0, 1, 5, 6, 3
    _defaults = {"icon": 0, "standardButtons": 0x400, "informativeText": "", "detailedText": ""}
    shown = []  # (kind, text) of every box so far

    @classmethod
    def _say(cls, kind, *a):
        text = " | ".join(str(x) for x in a if isinstance(x, str))
        cls.shown.append((kind, text))
        print(f"[message box, {kind}] {text}", file=sys.stderr)
        return cls.Ok

    @classmethod
    def information(cls, *a):
        return cls._say("information", *a)

    @classmethod
    def warning(cls, *a):
        return cls._say("warning", *a)

    @classmethod
    def critical(cls, *a):
        return cls._say("critical", *a)

    @classmethod
    def question(cls, *a):
        cls._say("question", *a)
        return cls.No

    def exec_(self):
        self._say("exec", str(self._props.get("text", "")))
        return self.Ok

    exec = exec_


class QFileDialog(QDialog):
    """Gives no file name, and notes that it was asked."""

    AnyFile, ExistingFile, Directory, ExistingFiles = 0, 1, 2, 3

    @staticmethod
    def getOpenFileName(*a):
        made_up.note("qt.QFileDialog.getOpenFileName (no one can answer: empty)")
        return ""

    getSaveFileName = getExistingDirectory = getOpenFileName

    @staticmethod
    def getOpenFileNames(*a):
        return ()


class QInputDialog(QDialog):
    """Gives no text, and notes that it was asked."""

    @staticmethod
    def getText(*a):
        made_up.note("qt.QInputDialog.getText (no one can answer: empty)")
        return ""
