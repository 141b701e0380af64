"""Makes the practice Slicer: scene, logics, views, application object.

The order matters.  The stand-in `qt` must be there before `import slicer`; the colour logic must be known before the
scene is, or the scene gets no colour nodes; displayable managers must be registered before the first view is made.
"""

import importlib
import os
import sys
import types

from . import qt_factory, qt_modules, made_up

qt_modules.install()

import slicer  # noqa: E402  (needs `qt`)
import slicer.util  # noqa: E402
import slicer_core  # noqa: E402, F401
import vtk  # noqa: E402

from . import layout, main_window, modules, sample_data, segment_editor, segment_statistics  # noqa: E402
from . import slicer_widgets, view_widgets, views  # noqa: E402
from .application import qSlicerApplication  # noqa: E402
from .subject_hierarchy import SubjectHierarchyFiller  # noqa: E402

SHARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "share")

# Slicer's Qt classes that are written out here; all others are made up.
OUR_CLASSES = {
    name: value
    for source in (views, view_widgets, layout, main_window, modules, segment_editor, slicer_widgets)
    for name, value in vars(source).items()
    if name.startswith(("qMRML", "qSlicer")) and isinstance(value, type)
}
OUR_CLASSES["qSlicerApplication"] = qSlicerApplication

# Module name, class of its logic, folder of its files under share/ if it reads any.
MODULES = (
    ("Units", "vtkSlicerUnitsLogic", None),
    ("Colors", "vtkSlicerColorLogic", None),
    ("SubjectHierarchy", "vtkSlicerSubjectHierarchyModuleLogic", None),
    ("Terminologies", "vtkSlicerTerminologiesModuleLogic", "Terminologies"),
    ("Volumes", "vtkSlicerVolumesLogic", None),
    ("Models", "vtkSlicerModelsLogic", None),
    ("Markups", "vtkSlicerMarkupsLogic", None),
    ("Transforms", "vtkSlicerTransformLogic", None),
    ("Segmentations", "vtkSlicerSegmentationsModuleLogic", None),
    ("Cameras", "vtkSlicerCamerasModuleLogic", None),
    ("VolumeRendering", "vtkSlicerVolumeRenderingLogic", "VolumeRendering"),
    ("CropVolume", "vtkSlicerCropVolumeLogic", None),
    ("Data", "vtkSlicerDataModuleLogic", None),
    ("Sequences", "vtkSlicerSequencesLogic", None),
    ("Tables", "vtkSlicerTablesLogic", None),
    ("Texts", "vtkSlicerTextsLogic", None),
    ("SceneViews", "vtkSlicerSceneViewsModuleLogic", None),
    ("Plots", "vtkSlicerPlotsLogic", None),
    ("Reformat", "vtkSlicerReformatLogic", None),
    ("ViewControllers", "vtkSlicerViewControllersLogic", None),
    ("Annotations", "vtkSlicerAnnotationModuleLogic", None),
)

# In Slicer's order: the views' own first, then those of the modules.  vtkMRMLThreeDSliceEdgeDisplayableManager is
# missing, because slicer-core's factory cannot make it: there are no coloured slice edges in the 3D view.
MANAGERS_3D = (
    "vtkMRMLCameraDisplayableManager",
    "vtkMRMLViewDisplayableManager",
    "vtkMRMLModelDisplayableManager",
    "vtkMRMLThreeDReformatDisplayableManager",
    "vtkMRMLCrosshairDisplayableManager3D",
    "vtkMRMLOrientationMarkerDisplayableManager",
    "vtkMRMLRulerDisplayableManager",
    "vtkMRMLVolumeRenderingDisplayableManager",
    "vtkMRMLSegmentationsDisplayableManager3D",
    "vtkMRMLMarkupsDisplayableManager",
    "vtkMRMLTransformsDisplayableManager3D",
    "vtkMRMLLinearTransformsDisplayableManager",
    "vtkMRMLColorLegendDisplayableManager",
)
MANAGERS_2D = (
    "vtkMRMLVolumeGlyphSliceDisplayableManager",
    "vtkMRMLModelSliceDisplayableManager",
    "vtkMRMLCrosshairDisplayableManager",
    "vtkMRMLOrientationMarkerDisplayableManager",
    "vtkMRMLRulerDisplayableManager",
    "vtkMRMLScalarBarDisplayableManager",
    "vtkMRMLSegmentationsDisplayableManager2D",
    "vtkMRMLMarkupsDisplayableManager",
    "vtkMRMLTransformsDisplayableManager2D",
    "vtkMRMLLinearTransformsDisplayableManager",
    "vtkMRMLColorLegendDisplayableManager",
)


def _slicer_getattr(name):
    """`slicer.qSomething`: one of our classes, else a made-up widget class, which is noted."""
    if name in OUR_CLASSES:
        return OUR_CLASSES[name]
    if name.startswith(("qMRML", "qSlicer")):
        made_up.note(f"slicer.{name} (class)")
        return qt_factory.make_widget_class(name)
    raise AttributeError(f"module 'slicer' has no attribute '{name}'")


def _prepare_names():
    """The modules and names that Slicer's own start-up makes importable."""
    for name in ("modules", "moduleNames"):
        module = types.ModuleType("slicer." + name)
        sys.modules["slicer." + name] = module
        setattr(slicer, name, module)
    slicer.__getattr__ = _slicer_getattr
    qt_factory.class_hooks.append(OUR_CLASSES.get)
    for name in ("vtkSegmentationCore", "vtkITK", "vtkTeem", "MRMLCore", "MRMLLogic", "MRMLDisplayableManager"):
        module = importlib.import_module("slicer_core." + name)
        sys.modules.setdefault(name, module)
        sys.modules.setdefault(name + "Python", module)
    addon = importlib.import_module("slicer_core.vtkAddonPython")
    sys.modules.setdefault("vtkAddonPython", addon)
    sys.modules.setdefault("vtkAddon", addon)
    for name in [name for name in sys.modules if name.startswith("slicer_core.vtkSlicer")]:
        sys.modules.setdefault(name.split(".")[1] + "Python", sys.modules[name])
    mrml = types.ModuleType("mrml")
    vars(mrml).update({name: value for name, value in vars(slicer).items() if name.startswith("vtk")})
    sys.modules["mrml"] = mrml
    # Scripts import these from __main__, which in Slicer is the Python console.
    console = sys.modules["__main__"]
    for name in ("qt", "ctk"):
        setattr(console, name, sys.modules[name])
    console.vtk, console.slicer = vtk, slicer


def _prepare_scene(app):
    """The scene with its colour nodes, singletons, readers for files and URLs."""
    scene = slicer.mrmlScene
    logic = app.applicationLogic()
    logic.SetTemporaryPath(app.temporaryPath)
    logic.SetHomeDirectory(os.path.dirname(SHARE))
    logic.SetShareDirectory(os.path.basename(SHARE))  # relative to the home directory

    remote = slicer.vtkMRMLRemoteIOLogic()
    remote.GetCacheManager().SetRemoteCacheDirectory(app.cachePath)
    data = slicer.vtkDataIOManagerLogic()
    data.SetMRMLApplicationLogic(logic)
    data.SetAndObserveDataIOManager(remote.GetDataIOManager())
    app._keep_alive = (remote, data)

    color = slicer.vtkSlicerColorLogic()
    color.SetMRMLApplicationLogic(logic)
    logic.SetColorLogic(color)

    scene.RegisterNodeClass(slicer.vtkMRMLCommandLineModuleNode())
    crosshair = slicer.vtkMRMLCrosshairNode()
    crosshair.SetCrosshairName("default")
    scene.AddNode(crosshair)
    logic.SetMRMLScene(scene)
    logic.SetMRMLSceneDataIO(scene, remote, data)
    color.SetMRMLScene(scene)
    return color


def _add_modules(app, color_logic):
    scene, app_logic = slicer.mrmlScene, app.applicationLogic()
    for name in ("SampleData", "SegmentStatistics"):  # scripted: their logic is imported by name
        app.moduleManager().add(modules.qSlicerCoreModule(name, None))
    app.moduleManager().add(segment_editor.SegmentEditorModule())
    for name, class_name, folder in MODULES:
        logic = color_logic if name == "Colors" else getattr(slicer, class_name)()
        if folder:
            logic.SetModuleShareDirectory(os.path.join(SHARE, folder))
        if logic.GetMRMLApplicationLogic() is None:
            logic.SetMRMLApplicationLogic(app_logic)
        if logic.GetMRMLScene() is None:
            logic.SetMRMLScene(scene)
        app_logic.SetModuleLogic(name, logic)
        app.moduleManager().add(modules.qSlicerCoreModule(name, logic))


def _register_displayable_managers(app):
    for factory_class, names in (
        (slicer.vtkMRMLThreeDViewDisplayableManagerFactory, MANAGERS_3D),
        (slicer.vtkMRMLSliceViewDisplayableManagerFactory, MANAGERS_2D),
    ):
        factory = factory_class.GetInstance()
        factory.SetMRMLApplicationLogic(app.applicationLogic())
        for name in names:
            factory.RegisterDisplayableManager(name)


def start(folder, with_data=True):
    """Make the application; `folder` is for its temporary files.  Returns `slicer.app`.

    Without `with_data` the sample data of the SampleData module cannot be had, as in a Slicer without a network.
    """
    _prepare_names()
    slicer.mrmlScene = slicer.vtkMRMLScene()
    slicer.app = app = qSlicerApplication(folder)
    color_logic = _prepare_scene(app)
    _register_displayable_managers(app)
    _add_modules(app, color_logic)
    app._subject_hierarchy = SubjectHierarchyFiller(slicer.mrmlScene)
    app._main_window = main_window.qSlicerMainWindow()
    app._layout_manager = layout.qSlicerLayoutManager()
    app._layout_manager.start()
    slicer.util.resetSliceViews()
    sample_data.install(with_data)
    segment_statistics.install()
    app.emit("startupCompleted()")
    return app
