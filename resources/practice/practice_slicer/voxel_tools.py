"""Operations on binary masks, with sizes in mm, by VTK's image filters: what the Segment Editor's effects are made of.

Masks are boolean arrays [k, j, i]; `spacing` is the voxel size (i, j, k) in mm.
"""

import numpy as np
import vtk
from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy


def _image(mask, spacing):
    image = vtk.vtkImageData()
    image.SetDimensions(mask.shape[::-1])
    image.SetSpacing(spacing)
    values = np.ascontiguousarray(mask, np.uint8).ravel()
    image.GetPointData().SetScalars(numpy_to_vtk(values, deep=True, array_type=vtk.VTK_UNSIGNED_CHAR))
    return image


def _result(filter_, shape):
    filter_.Update()
    return vtk_to_numpy(filter_.GetOutput().GetPointData().GetScalars()).reshape(shape)


def _kernel_size(size_mm, spacing):
    """The odd numbers of voxels nearest to a size in mm, along i, j, k."""
    return [max(1, 2 * round((size_mm / step - 1) / 2) + 1) for step in spacing]


def _squared_distance(mask, spacing):
    """For each voxel of the mask, the squared distance in mm2 to the nearest voxel outside it."""
    distance = vtk.vtkImageEuclideanDistance()
    distance.SetInputData(_image(mask, spacing))
    distance.ConsiderAnisotropyOn()
    distance.InitializeOn()
    distance.SetMaximumDistance(1e9)  # mm2; larger values make the filter fail
    return _result(distance, mask.shape)


def grown(mask, spacing, margin):
    """The mask with all voxels within `margin` mm of it; a negative margin shrinks it."""
    if margin == 0 or not mask.any():
        return mask.copy()
    if margin > 0:
        return mask | (_squared_distance(~mask, spacing) <= margin**2 + 1e-6)
    return mask & (_squared_distance(mask, spacing) > margin**2 + 1e-6)


def median(mask, spacing, kernel_mm):
    smooth = vtk.vtkImageMedian3D()
    smooth.SetInputData(_image(mask, spacing))
    smooth.SetKernelSize(*_kernel_size(kernel_mm, spacing))
    return _result(smooth, mask.shape) > 0


def gaussian(mask, spacing, deviation_mm):
    blur = vtk.vtkImageGaussianSmooth()
    scaled = vtk.vtkImageShiftScale()
    scaled.SetInputData(_image(mask, spacing))
    scaled.SetOutputScalarTypeToFloat()
    blur.SetInputConnection(scaled.GetOutputPort())
    blur.SetStandardDeviations(*[deviation_mm / step for step in spacing])
    blur.SetRadiusFactors(3, 3, 3)
    return _result(blur, mask.shape) > 0.5


def _open_close(mask, spacing, kernel_mm, open_value):
    morphology = vtk.vtkImageOpenClose3D()
    morphology.SetInputData(_image(mask, spacing))
    morphology.SetOpenValue(open_value)
    morphology.SetCloseValue(1 - open_value)
    morphology.SetKernelSize(*_kernel_size(kernel_mm, spacing))
    return _result(morphology, mask.shape) > 0


def opened(mask, spacing, kernel_mm):
    """Without what is thinner than the kernel."""
    return _open_close(mask, spacing, kernel_mm, 1)


def closed(mask, spacing, kernel_mm):
    """With holes and gaps narrower than the kernel filled."""
    return _open_close(mask, spacing, kernel_mm, 0)


def islands(mask, minimum_size=0):
    """Numbers of the connected parts (by voxel faces), 1 for the largest; parts below a size are 0."""
    parts = vtk.vtkImageConnectivityFilter()
    parts.SetInputData(_image(mask, (1, 1, 1)))
    parts.SetScalarRange(1, 1)
    parts.SetExtractionModeToAllRegions()
    parts.SetLabelModeToSizeRank()
    parts.SetLabelScalarTypeToInt()
    parts.SetSizeRange(max(1, int(minimum_size)), mask.size)
    return _result(parts, mask.shape)
