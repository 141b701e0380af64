"""`slicer.app`: the application object that the Qt program normally has.

It says everywhere that it is the practice Slicer: in the version text and in the title of the main window.
"""

import os
import platform
import sys
import tempfile
import types

import slicer

from . import made_up
from .event_loop import loop
from .io_manager import CoreIOManager
from .modules import ModuleManager
from .qt_core import QObject, QSettings, QThread
from .qt_widgets import QWidget

VERSION = (5, 13, 0)
REVISION = "34000"  # scripts read it as a number
OPERATING_SYSTEMS = {"linux": "linux", "darwin": "macosx", "win32": "win"}


def version_fields():
    """What `slicer.app` and /slicer/system/version say about the version."""
    major, minor, patch = VERSION
    system = OPERATING_SYSTEMS.get(sys.platform, "linux")
    machine = platform.machine().lower()
    arch = "arm64" if machine in ("arm64", "aarch64") else "amd64"
    return {
        "applicationName": "Slicer",
        "applicationDisplayName": "3D Slicer",
        "applicationVersion": f"{major}.{minor}.{patch}-practice",
        "releaseType": "Experimental",
        "repositoryUrl": "",
        "repositoryBranch": "practice",
        "repositoryRevision": REVISION,
        "revision": REVISION,
        "majorVersion": major,
        "minorVersion": minor,
        "patchVersion": patch,
        "arch": arch,
        "os": system,
        "platform": f"{system}-{arch}",
        "isCustomMainApplication": False,
        "mainApplicationName": "Slicer",
        "mainApplicationDisplayName": "3D Slicer",
        "mainApplicationRepositoryUrl": "",
        "mainApplicationRepositoryRevision": REVISION,
        "mainApplicationRevision": REVISION,
        "mainApplicationMajorVersion": major,
        "mainApplicationMinorVersion": minor,
        "mainApplicationPatchVersion": patch,
    }


class _PythonConsole(QWidget):
    """The Python console, which shows nothing."""

    @property
    def clear(self):
        return lambda: None


class _ErrorLog(QObject):
    """An error log that stays empty: errors go to stderr."""

    def logEntryCount(self):
        return 0


class _Clipboard:
    """Keeps text; pictures are dropped."""

    def __init__(self):
        self.text = ""

    def setText(self, text):
        self.text = text

    def setImage(self, image):
        pass

    setPixmap = setImage


class qSlicerApplication(QObject):
    """What `slicer.app` is.  `folder` is this process's own folder for temporary files."""

    usageEventLoggingEnabled = False

    def __init__(self, folder):
        super().__init__()
        self._props.update(version_fields())
        self._props.update(
            slicerHome=os.path.dirname(os.path.abspath(__file__)),
            temporaryPath=folder,
            cachePath=os.path.join(folder, "cache"),
            documentationBaseUrl="https://slicer.readthedocs.io/en/latest/",
            defaultScenePath=tempfile.gettempdir(),
            renderPaused=False,
            slicerUserSettingsFilePath=os.path.join(folder, "Slicer.ini"),
            slicerRevisionUserSettingsFilePath=os.path.join(folder, "Slicer-practice.ini"),
            extensionsInstallPath=os.path.join(folder, "Extensions"),
            applicationLocaleName="en_US",
        )
        os.makedirs(self.cachePath, exist_ok=True)
        self._settings = QSettings()
        self._logic = slicer.vtkSlicerApplicationLogic()
        self._modules = ModuleManager()
        self._io = CoreIOManager()
        self._layout_manager = None
        self._main_window = None
        self._subject_hierarchy = None
        self._console = _PythonConsole()
        self._errors = _ErrorLog()
        self._clipboard = _Clipboard()
        self._pauses = 0
        self._in_events = False

    # What only the practice Slicer has.
    def practiceTouchedNames(self):
        """The made-up names that code touched and only the full Slicer really has."""
        return made_up.names()

    def practiceClearTouchedNames(self):
        made_up.clear()

    def subjectHierarchyNode(self):
        return self._subject_hierarchy.sh()

    def mrmlScene(self):
        return slicer.mrmlScene

    def applicationLogic(self):
        return self._logic

    def layoutManager(self):
        return self._layout_manager

    def moduleManager(self):
        return self._modules

    def moduleLogic(self, name):
        m = self._modules.module(name)
        return m.logic() if m else None

    def module(self, name):
        return self._modules.module(name)

    def ioManager(self):
        return self._io

    coreIOManager = ioManager

    def userSettings(self):
        return self._settings

    settings = revisionUserSettings = userSettings

    def settingsDialog(self):
        return QWidget()

    def topLevelWidgets(self):
        return [self._main_window] if self._main_window is not None else []

    def mainWindow(self):
        return self._main_window

    def activeWindow(self):
        return self._main_window

    def pythonConsole(self):
        return self._console

    def errorLogModel(self):
        return self._errors

    def clipboard(self):
        return self._clipboard

    def commandOptions(self):
        return types.SimpleNamespace(
            runPythonAndExit=False,
            noMainWindow=False,
            testingEnabled=False,
            isTestingEnabled=False,
            pythonScript="",
            disableSettings=False,
        )

    def testingEnabled(self):
        return False

    def testAttribute(self, a):
        return False

    def keyboardModifiers(self):
        return 0

    def thread(self):
        return QThread._main

    def logUsageEvent(self, *a):
        pass

    def processEvents(self, *a):
        if self._in_events:
            return
        self._in_events = True
        try:
            loop.process(0)
        finally:
            self._in_events = False

    def sendPostedEvents(self, *a):
        pass

    def pauseRender(self):
        self._pauses += 1
        self._props["renderPaused"] = True

    def resumeRender(self):
        self._pauses = max(0, self._pauses - 1)
        self._props["renderPaused"] = self._pauses > 0

    def setRenderPaused(self, b):
        (self.pauseRender if b else self.resumeRender)()

    def isRenderPaused(self):
        return self._props["renderPaused"]

    def setOverrideCursor(self, *a):
        pass

    restoreOverrideCursor = setOverrideCursor

    def exit(self, code=0):
        loop.exit_code = code
        loop.quit = True

    quit = exit

    def restart(self):
        raise RuntimeError("the practice Slicer cannot restart itself")

    def startupEnvironment(self):
        return types.SimpleNamespace(keys=lambda: list(os.environ), value=os.environ.get)

    def moduleDocumentationUrl(self, n):
        return self.documentationBaseUrl + f"user_guide/modules/{n.lower()}.html"

    def nodeModule(self, n):
        return ""

    def tr(self, ctx, text=None):
        return text if text is not None else ctx

    def translate(self, ctx, text, *a):
        return text

    def openNodeModule(self, node, *a):
        pass

    def aboutToQuit(self):
        return self._signal("aboutToQuit")
