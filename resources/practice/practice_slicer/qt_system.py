"""Stand-in for Qt's files, folders, dates, cursors, application object and the `qt.Qt` constants."""

import datetime
import os
import shutil
import sys
import tempfile

from . import made_up
from .qt_core import QObject
from .qt_images import QByteArray, QFont, QIODevice, QPoint


class QDir:
    """A folder."""

    def __init__(self, path="."):
        self.path = str(path)

    def exists(self, *a):
        return os.path.isdir(os.path.join(self.path, *a))

    def mkpath(self, p):
        os.makedirs(os.path.join(self.path, p), exist_ok=True)
        return True

    mkdir = mkpath

    def absolutePath(self):
        return os.path.abspath(self.path)

    def filePath(self, n):
        return os.path.join(self.path, n)

    def cd(self, n):
        p = os.path.normpath(os.path.join(self.path, n))
        if os.path.isdir(p):
            self.path = p
            return True
        return False

    def entryList(self, *a):
        return sorted(os.listdir(self.path))

    def removeRecursively(self):
        shutil.rmtree(self.path, ignore_errors=True)
        return True

    def remove(self, n):
        try:
            os.remove(os.path.join(self.path, n))
            return True
        except OSError:
            return False

    @staticmethod
    def tempPath():
        return tempfile.gettempdir()

    @staticmethod
    def homePath():
        return os.path.expanduser("~")


class QFileInfo:
    """What is known of a path."""

    def __init__(self, p):
        self._p = str(p)

    def exists(self):
        return os.path.exists(self._p)

    def fileName(self):
        return os.path.basename(self._p)

    def baseName(self):
        return os.path.basename(self._p).split(".")[0]

    def suffix(self):
        return os.path.splitext(self._p)[1].lstrip(".")

    def absolutePath(self):
        return os.path.dirname(os.path.abspath(self._p))

    path = absolutePath

    def absoluteFilePath(self):
        return os.path.abspath(self._p)

    def size(self):
        return os.path.getsize(self._p)


class QFile(QIODevice):
    """A file."""

    def __init__(self, p):
        self._p = p

    def open(self, mode):
        try:
            self._f = open(self._p, "rb" if mode & 1 else "wb")
            return True
        except OSError:
            return False

    def readAll(self):
        return QByteArray(self._f.read())

    def close(self):
        self._f.close()

    def fileName(self):
        return self._p

    def exists(self):  # works on an instance and as QFile.exists(path)
        return os.path.exists(self._p if isinstance(self, QFile) else self)

    @staticmethod
    def copy(a, b):
        shutil.copyfile(a, b)
        return True


class QTemporaryDir:
    """A new temporary folder."""

    def __init__(self, *a):
        self._p = tempfile.mkdtemp()

    def path(self):
        return self._p


class QUrl:
    """A URL as text."""

    TolerantMode = 0

    def __init__(self, s="", *a):
        self._s = s

    def toString(self):
        return self._s

    @classmethod
    def fromLocalFile(cls, p):
        return cls("file://" + p)


class QDesktopServices:
    """Opens nothing; `opened` lists what was asked for."""

    opened = []

    @classmethod
    def openUrl(cls, u):
        cls.opened.append(u.toString())
        return True


class QDate:
    """A day."""

    def __init__(self, *a):
        self.d = datetime.date(*a) if a else datetime.date.today()

    @classmethod
    def currentDate(cls):
        return cls()

    def toString(self, fmt=""):
        return self.d.strftime("%Y%m%d" if fmt == "yyyyMMdd" else "%Y-%m-%d")

    def addDays(self, n):
        q = QDate()
        q.d = self.d + datetime.timedelta(n)
        return q


class QDateTime(QDate):
    """A day; the time of day is left out."""

    @classmethod
    def currentDateTime(cls):
        return cls()


class QSizePolicy:
    """The numbers of the size policies; nothing is laid out here."""

    Fixed, Minimum, Maximum, Preferred, Expanding, MinimumExpanding, Ignored = 0, 1, 4, 5, 7, 3, 13

    def __init__(self, h=5, v=5, *a):
        self.h, self.v = h, v

    def setHorizontalStretch(self, n):
        pass

    setVerticalStretch = setRetainSizeWhenHidden = setHorizontalPolicy = setVerticalPolicy = setHorizontalStretch


class QStandardPaths:
    """Folders of the user."""

    HomeLocation, DocumentsLocation, TempLocation, DesktopLocation, DownloadLocation = 8, 1, 7, 0, 14

    @staticmethod
    def writableLocation(k):
        return tempfile.gettempdir() if k == 7 else os.path.expanduser("~")


class QKeySequence:
    """Keys of a shortcut."""

    def __init__(self, *a):
        self.keys = a


class QShortcut(QObject):
    """Nobody presses keys here; `activated` can be emitted."""

    def setKey(self, k):
        self._props["key"] = k

    def setContext(self, c):
        pass


class QFontDatabase:
    """Gives the one font."""

    FixedFont, GeneralFont = 1, 0

    @staticmethod
    def systemFont(k):
        return QFont()


class QCursor:
    """The mouse, which is never moved."""

    def __init__(self, *a):
        pass

    @staticmethod
    def pos():
        return QPoint(0, 0)


class QLocale:
    """English."""

    def __init__(self, *a):
        pass

    def name(self):
        return "en_US"

    @staticmethod
    def setDefault(*a):
        pass


class QtNamespace:
    """The constants of `qt.Qt`; one that is not listed is made up as 0 and noted."""

    IgnoreAspectRatio, KeepAspectRatio, KeepAspectRatioByExpanding = 0, 1, 2
    FastTransformation, SmoothTransformation = 0, 1
    Unchecked, PartiallyChecked, Checked = 0, 1, 2
    Horizontal, Vertical = 1, 2
    NoModifier, ShiftModifier, ControlModifier, AltModifier = 0, 0x02000000, 0x04000000, 0x08000000
    LeftButton, RightButton, MiddleButton, NoButton = 1, 2, 4, 0
    ArrowCursor, CrossCursor, WaitCursor = 0, 2, 3
    UserRole, DisplayRole, EditRole = 256, 0, 2
    AlignLeft, AlignRight, AlignHCenter, AlignCenter, AlignTop, AlignBottom, AlignVCenter = (
        1,
        2,
        4,
        0x84,
        0x20,
        0x40,
        0x80,
    )
    SolidLine, DashLine, DotLine = 1, 2, 3
    RichText, PlainText, AutoText = 1, 0, 2
    WA_DeleteOnClose = 55
    ISODate, TextDate = 1, 0

    def __getattr__(self, n):
        if n.startswith("__"):
            raise AttributeError(n)
        made_up.note("qt.Qt." + n)
        return 0


class QApplication(QObject):
    """The static members of the application object."""

    @staticmethod
    def overrideCursor():
        return None

    @staticmethod
    def setOverrideCursor(*a):
        pass

    restoreOverrideCursor = changeOverrideCursor = setOverrideCursor

    @staticmethod
    def processEvents(*a):
        sys.modules["slicer"].app.processEvents()

    @staticmethod
    def instance():
        return sys.modules["slicer"].app

    @staticmethod
    def keyboardModifiers():
        return 0

    @staticmethod
    def clipboard():
        return sys.modules["slicer"].app.clipboard()


QCoreApplication = QGuiApplication = QApplication
