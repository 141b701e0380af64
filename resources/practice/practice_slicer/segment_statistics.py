"""A small SegmentStatistics module: the figures that scripts ask for most, under Slicer's names.

Slicer's own is a scripted module that does not come with its core libraries.  Label map, scalar volume and closed
surface figures are computed here anew; of the optional ones centroid, principal axes and oriented box.  Others that
are switched on are left out and noted in `made_up`.
"""

import sys

import numpy as np
import slicer
import vtk
from vtk.util.numpy_support import vtk_to_numpy

from . import made_up

LABELMAP, SCALAR, SURFACE = (
    kind + "SegmentStatisticsPlugin." for kind in ("Labelmap", "ScalarVolume", "ClosedSurface")
)
AXES = ("x", "y", "z")
OPTIONAL = ("centroid_ras", "principal_moments", "obb_origin_ras", "obb_diameter_mm")
OPTIONAL += tuple(f"principal_axis_{axis}" for axis in AXES) + tuple(f"obb_direction_ras_{axis}" for axis in AXES)
UNITS = {"voxel_count": "voxels", "volume_mm3": "mm3", "volume_cm3": "cm3", "surface_mm2": "mm2"}


def _size_figures(prefix, count, voxel_volume):
    return {
        prefix + "voxel_count": int(count),
        prefix + "volume_mm3": float(count * voxel_volume),
        prefix + "volume_cm3": float(count * voxel_volume / 1000),
    }


def _image_array(image):
    return vtk_to_numpy(image.GetPointData().GetScalars()).reshape(image.GetDimensions()[::-1])


def _ras_points(image, mask):
    """The RAS positions in mm of the voxels of a mask."""
    matrix = vtk.vtkMatrix4x4()
    image.GetImageToWorldMatrix(matrix)
    k, j, i = np.nonzero(mask)
    low = image.GetExtent()[::2]
    ijk = np.stack([i + low[0], j + low[1], k + low[2], np.ones_like(i)]).astype(float)
    return (slicer.util.arrayFromVTKMatrix(matrix) @ ijk)[:3].T


def _shape_figures(points):
    """Centroid, principal axes (shortest spread first, as ITK has them) and the box along them."""
    centre = points.mean(axis=0)
    moments, axes = np.linalg.eigh(np.cov((points - centre).T) if len(points) > 1 else np.zeros((3, 3)))
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    along = (points - centre) @ axes
    low, high = along.min(axis=0), along.max(axis=0)
    figures = {
        "centroid_ras": centre.tolist(),
        "principal_moments": moments.tolist(),
        "obb_origin_ras": (centre + axes @ low).tolist(),
        "obb_diameter_mm": (high - low).tolist(),
    }
    for number, axis in enumerate(AXES):
        figures["principal_axis_" + axis] = figures["obb_direction_ras_" + axis] = axes[:, number].tolist()
    return figures


class SegmentStatisticsLogic:
    """Computes statistics of all visible segments of a segmentation."""

    def __init__(self, parent=None):
        self._statistics = {"SegmentIDs": [], "MeasurementInfo": {}}

    def getParameterNode(self):
        """The node with the parameters `Segmentation`, `ScalarVolume`, `<plugin>.<figure>.enabled`."""
        node = slicer.mrmlScene.GetSingletonNode("SegmentStatistics", "vtkMRMLScriptedModuleNode")
        if node is None:
            node = slicer.vtkMRMLScriptedModuleNode()
            node.SetSingletonTag("SegmentStatistics")
            node.SetModuleName("SegmentStatistics")
            node.SetName("SegmentStatistics")
            node = slicer.mrmlScene.AddNode(node)
        return node

    def reset(self):
        self._statistics = {"SegmentIDs": [], "MeasurementInfo": {}}

    def computeStatistics(self):
        """Compute for the segments that are visible.  Raises ValueError without a segmentation."""
        self.reset()
        parameters = self.getParameterNode()
        segmentation = slicer.mrmlScene.GetNodeByID(parameters.GetParameter("Segmentation") or "")
        if segmentation is None:
            raise ValueError("The parameter node names no segmentation (parameter 'Segmentation')")
        volume = slicer.mrmlScene.GetNodeByID(parameters.GetParameter("ScalarVolume") or "")
        segmentation.CreateDefaultDisplayNodes()
        visible = vtk.vtkStringArray()
        segmentation.GetDisplayNode().GetVisibleSegmentIDs(visible)
        for index in range(visible.GetNumberOfValues()):
            self.updateStatisticsForSegment(visible.GetValue(index), segmentation, volume)

    def updateStatisticsForSegment(self, segment_id, segmentation, volume=None):
        figures = {
            **self._labelmap_figures(segment_id, segmentation),
            **(_scalar_figures(segment_id, segmentation, volume) if volume is not None else {}),
            **_surface_figures(segment_id, segmentation),
        }
        self._statistics["SegmentIDs"].append(segment_id)
        self._statistics[segment_id, "Segment"] = segmentation.GetSegmentation().GetSegment(segment_id).GetName()
        for name, value in figures.items():
            self._statistics[segment_id, name] = value
            short = name.split(".", 1)[1]
            self._statistics["MeasurementInfo"][name] = {"name": short, "units": UNITS.get(short, "")}

    def _wanted(self):
        """The optional label map figures that the parameter node switches on."""
        parameters, wanted = self.getParameterNode(), []
        for name in parameters.GetParameterNames():
            if name.startswith(LABELMAP) and name.endswith(".enabled") and parameters.GetParameter(name) == "True":
                wanted.append(name.removeprefix(LABELMAP).removesuffix(".enabled"))
        for name in wanted:
            if name not in (*OPTIONAL, "voxel_count", "volume_mm3", "volume_cm3"):
                made_up.note(f"SegmentStatistics.{LABELMAP}{name} (left out)")
        return [name for name in wanted if name in OPTIONAL]

    def _labelmap_figures(self, segment_id, segmentation):
        if not segmentation.GetSegmentation().ContainsRepresentation("Binary labelmap"):
            return {}
        image = slicer.vtkOrientedImageData()
        segmentation.GetBinaryLabelmapRepresentation(segment_id, image)
        if image.IsEmpty():
            return _size_figures(LABELMAP, 0, 1)
        mask = _image_array(image) > 0
        figures = _size_figures(LABELMAP, np.count_nonzero(mask), float(np.prod(image.GetSpacing())))
        wanted = self._wanted()
        if wanted and mask.any():
            shape = _shape_figures(_ras_points(image, mask))
            figures.update({LABELMAP + name: shape[name] for name in wanted})
        return figures

    def getStatistics(self):
        """The figures by (segment id, name), and the keys SegmentIDs and MeasurementInfo."""
        return self._statistics

    def getNonEmptyKeys(self):
        return ["Segment", *self._statistics["MeasurementInfo"]]

    def exportToTable(self, table, nonEmptyKeysOnly=True):
        """Fill a table node: one row for each segment, one column for each figure."""
        table.RemoveAllColumns()
        for key in self.getNonEmptyKeys():
            values = [self._statistics.get((segment_id, key)) for segment_id in self._statistics["SegmentIDs"]]
            numbers = all(isinstance(value, (int, float)) for value in values)
            column = vtk.vtkDoubleArray() if numbers else vtk.vtkStringArray()
            column.SetName(key.rsplit(".", 1)[-1] if key != "Segment" else key)
            for value in values:
                column.InsertNextValue(value if numbers else str(value))
            table.AddColumn(column)

    def showTable(self, table):
        """Show a table in the table view."""
        slicer.app.applicationLogic().GetSelectionNode().SetActiveTableID(table.GetID())
        slicer.app.applicationLogic().PropagateTableSelection()


def _scalar_figures(segment_id, segmentation, volume):
    """Statistics of the voxels of a volume inside the segment."""
    mask = slicer.util.arrayFromSegmentBinaryLabelmap(segmentation, segment_id, volume)
    if mask is None:
        return {}
    values = slicer.util.arrayFromVolume(volume)[mask > 0]
    figures = _size_figures(SCALAR, values.size, float(np.prod(volume.GetSpacing())))
    if values.size:
        figures[SCALAR + "min"], figures[SCALAR + "max"] = float(values.min()), float(values.max())
        figures[SCALAR + "mean"], figures[SCALAR + "median"] = float(values.mean()), float(np.median(values))
        figures[SCALAR + "stdev"] = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return figures


def _surface_figures(segment_id, segmentation):
    """Area and volume of the closed surface, if there is one."""
    if not segmentation.GetSegmentation().ContainsRepresentation("Closed surface"):
        return {}
    surface = vtk.vtkPolyData()
    segmentation.GetClosedSurfaceRepresentation(segment_id, surface)
    if not surface.GetNumberOfPolys():
        return {}
    triangles = vtk.vtkTriangleFilter()
    triangles.SetInputData(surface)
    triangles.PassLinesOff()
    triangles.PassVertsOff()
    mass = vtk.vtkMassProperties()
    mass.SetInputConnection(triangles.GetOutputPort())
    mass.Update()
    return {
        SURFACE + "surface_mm2": mass.GetSurfaceArea(),
        SURFACE + "volume_mm3": mass.GetVolume(),
        SURFACE + "volume_cm3": mass.GetVolume() / 1000,
    }


def install():
    """Make `import SegmentStatistics` find this module."""
    sys.modules["SegmentStatistics"] = sys.modules[__name__]
