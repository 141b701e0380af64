"""Modules and the module manager: a loadable module is a name and a logic, a scripted one is imported as in Slicer."""

import importlib
import os
import sys

import slicer

from . import qt_factory
from .qt_core import QObject
from .qt_widgets import QVBoxLayout, QWidget


class qSlicerCoreModule(QWidget):
    """A loadable module: its name, its logic."""

    def __init__(self, name, logic, path=""):
        super().__init__()
        self._props.update(
            name=name,
            objectName=name,
            title=name,
            path=path,
            categories=(),
            dependencies=(),
            contributors=(),
            helpText="",
            defaultDocumentationLink="",
        )
        self._logic = logic
        self._widget = None

    def logic(self):
        return self._logic

    def widgetRepresentation(self):
        if self._widget is None:
            self._widget = qt_factory.make_widget_class(f"qSlicer{self.name}ModuleWidget")()
        return self._widget

    createNewWidgetRepresentation = widgetRepresentation

    def toolBar(self):
        if "_tool_bar" not in self.__dict__:
            kind = "qMRMLSequenceBrowserToolBar" if self.name == "Sequences" else "QToolBar"
            self._tool_bar = qt_factory.class_for(kind)()
        return self._tool_bar

    def setActiveBrowserNode(self, n):
        pass

    def __repr__(self):
        return f"qSlicer{self.name}Module (qSlicer{self.name}Module at: {hex(id(self))})"


class qSlicerScriptedLoadableModule(qSlicerCoreModule):
    """A scripted module: the Python file is imported and its classes made as Slicer does."""

    def load(self):
        name, path = self.name, self.path
        folder = os.path.dirname(path)
        if folder not in sys.path:
            sys.path.append(folder)
        mod = importlib.import_module(name)
        cls = getattr(mod, name, None)
        self._mod = mod
        if cls is not None:
            inst = cls(self)
            setattr(slicer.modules, name + "Instance", inst)
        return self

    def widgetRepresentation(self):
        if self._widget is None:
            w = qSlicerScriptedLoadableModuleWidget()
            w.setLayout(QVBoxLayout())
            cls = getattr(self._mod, self.name + "Widget", None)
            if cls is None:
                return None
            w.setMRMLScene(slicer.mrmlScene)
            self._widget = w
            w._py = inst = cls(w)
            setattr(slicer.modules, self.name + "Widget", inst)
            inst.setup()
        return self._widget


class qSlicerScriptedLoadableModuleWidget(QWidget):
    """Holds the panel that a scripted module builds."""

    def self(self):
        return self._py


class ModuleManager(QObject):
    """Knows the modules by name; also its own factory manager."""

    def __init__(self):
        super().__init__()
        self._modules = {}

    def add(self, m):
        self._modules[m.name] = m
        setattr(slicer.modules, m.name.lower(), m)
        setattr(slicer.moduleNames, m.name, m.name)

    def module(self, name):
        return self._modules.get(name) or next(
            (m for n, m in self._modules.items() if n.lower() == str(name).lower()), None
        )

    def factoryManager(self):
        return self

    def modulesNames(self):
        return list(self._modules)

    loadedModuleNames = registeredModuleNames = instantiatedModuleNames = modulesNames

    def isLoaded(self, n):
        return n in self._modules

    def loadModule(self, path, *a):
        name = os.path.splitext(os.path.basename(path))[0]
        m = qSlicerScriptedLoadableModule(name, None, path)
        self.add(m)
        m.load()
        return True

    def registerModule(self, info):
        return True

    def loadModules(self, names):
        return True
