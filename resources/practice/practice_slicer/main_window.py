"""The main window, which exists only as a picture.

There is no Qt to draw menus and panels, so the picture shows the title, the views in their places under their coloured
bars, and a list of data nodes where the module panel would be.
"""

import sys

import slicer
from PIL import Image, ImageDraw, ImageFont

from . import qt_factory
from .layout import BAR_HEIGHT
from .qt_images import QPixmap
from .qt_widgets import QVBoxLayout, QWidget

PARTS = (  # class and name of what scripts look for in the main window
    ("QToolBar", "MainToolBar"),
    ("QToolBar", "ViewToolBar"),
    ("QMenuBar", "menubar"),
    ("QStatusBar", "StatusBar"),
    ("QDockWidget", "PanelDockWidget"),
    ("QDockWidget", "PythonConsoleDockWidget"),
    ("QDockWidget", "ErrorLogDockWidget"),
    ("qSlicerModuleSelector", "ModuleSelector"),
    ("QFrame", "CentralWidget"),
    ("qSlicerModulePanel", "ModulePanel"),
    ("QLabel", "LogoLabel"),
    ("DataProbe", "DataProbeCollapsibleWidget"),
)
PANEL_WIDTH = 340  # pixels
TOOLBAR_HEIGHT = 40
ROW_HEIGHT = 20
INK, PALE_INK, WINDOW, TOOLBAR, PANEL = (
    (32, 32, 36),
    (110, 112, 120),
    (62, 62, 66),
    (226, 228, 234),
    (240, 240, 242),
)


class qSlicerMainWindow(QWidget):
    """What `slicer.util.mainWindow()` gives."""

    def __init__(self):
        super().__init__()
        self._props.update(width=1280, height=960, visible=True, windowTitle="3D Slicer (practice)")
        self.objectName = "qSlicerMainWindow"
        for class_name, name in PARTS:
            part = qt_factory.class_for(class_name)(self)
            part.objectName = name
            part.setLayout(QVBoxLayout())
            part.show()
        self._named("ViewToolBar").addAction("Layout")
        self._selected = "Welcome"

    def _named(self, name):
        return self.findChild(None, name)

    def statusBar(self):
        return self._named("StatusBar")

    def moduleSelector(self):
        return _ModuleSelector(self)

    def pythonConsole(self):
        return slicer.app.pythonConsole()

    def errorLogDockWidget(self):
        return self._named("ErrorLogDockWidget")

    def centralWidget(self):
        return self._named("CentralWidget")

    def resize(self, *size):
        super().resize(*size)
        slicer.app.layoutManager().fitViews()

    def viewArea(self):
        """(x, y, width, height) in pixels of the part of the window that the views share."""
        left = PANEL_WIDTH if self._named("PanelDockWidget").visible else 0
        top = TOOLBAR_HEIGHT if self._named("MainToolBar").visible else 0
        return left, top, self._props["width"] - left, self._props["height"] - top

    def grab(self, *rectangle):
        """The picture of the window, with all views drawn anew."""
        manager = slicer.app.layoutManager()
        manager.fitViews()
        picture = Image.new("RGBA", (self._props["width"], self._props["height"]), WINDOW + (255,))
        draw = ImageDraw.Draw(picture)
        self._draw_toolbar(draw)
        self._draw_panel(draw)
        for widget, place in manager.places():
            self._draw_view(picture, draw, widget, place)
        return QPixmap(picture)

    def _draw_toolbar(self, draw):
        left, top, width, _ = self.viewArea()
        if top:
            draw.rectangle((0, 0, left + width, top - 1), fill=TOOLBAR)
            draw.text((12, 11), self._props["windowTitle"], fill=INK, font=font(15))
            draw.text((PANEL_WIDTH + 8, 13), f"Modules: {self._selected}", fill=INK, font=font(13))

    def _draw_panel(self, draw):
        left, top, _, height = self.viewArea()
        if not left:
            return
        draw.rectangle((0, top, left - 1, top + height), fill=PANEL)
        y = top + 10
        draw.text((12, y), "Data", fill=INK, font=font(15))
        nodes = [n for n in slicer.util.getNodesByClass("vtkMRMLDisplayableNode") if not n.GetHideFromEditors()]
        fitting = (height - 60) // ROW_HEIGHT
        for node in nodes[:fitting]:
            y += ROW_HEIGHT
            draw.text((20, y), shortened(node.GetName(), 28), fill=INK, font=font(13))
            kind = node.GetClassName().removeprefix("vtkMRML").removesuffix("Node")
            draw.text((210, y), shortened(kind, 18), fill=PALE_INK, font=font(12))
        if not nodes:
            draw.text((20, y + ROW_HEIGHT), "no data loaded", fill=PALE_INK, font=font(13))
        elif len(nodes) > fitting:
            draw.text((20, y + ROW_HEIGHT), f"and {len(nodes) - fitting} more", fill=PALE_INK, font=font(13))

    def _draw_view(self, picture, draw, widget, place):
        x, y, width, height = place
        node = slicer.mrmlScene.GetNodeByID(widget.viewNodeID())
        colour = tuple(int(255 * channel) for channel in node.GetLayoutColor())
        draw.rectangle((x, y - BAR_HEIGHT, x + width - 1, y - 1), fill=colour)
        draw.text((x + 6, y - BAR_HEIGHT + 2), node.GetLayoutLabel() or "", fill=INK, font=font(14))
        if widget.renderView() is not None:
            name = node.GetOrientation() if node.IsA("vtkMRMLSliceNode") else node.GetName()
            picture.paste(widget.grab().im, (x, y))
        else:
            name = node.GetName()
            draw.rectangle((x, y, x + width - 1, y + height - 1), fill=PANEL)
            draw.text((x + 12, y + 12), "tables and plots are not drawn in the practice Slicer", fill=PALE_INK)
        draw.text((x + 32, y - BAR_HEIGHT + 3), name, fill=INK, font=font(12))


_fonts = {}


def font(size):
    """Pillow's own font at a size in pixels (a fixed small one where Pillow is built without FreeType)."""
    if size not in _fonts:
        _fonts[size] = ImageFont.load_default(size)
    return _fonts[size]


def shortened(text, length):
    return text if len(text) <= length else text[: length - 1] + "…"


class _ModuleSelector:
    """Remembers which module was chosen."""

    def __init__(self, window):
        self._window = window

    def selectModule(self, name):
        module = slicer.app.moduleManager().module(name)
        if module is None:
            print(f"Module {name} is not in the practice Slicer.", file=sys.stderr)
            return
        self._window._selected = module.name
        module.widgetRepresentation()

    @property
    def selectedModule(self):
        return self._window._selected
