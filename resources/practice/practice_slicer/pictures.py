"""Pictures between VTK, Pillow and NumPy."""

import numpy as np
import vtk
from PIL import Image
from vtk.util.numpy_support import numpy_to_vtk, vtk_to_numpy


def window_image(render_window):
    """What a render window shows, as a Pillow image."""
    grabber = vtk.vtkWindowToImageFilter()
    grabber.SetInput(render_window)
    grabber.SetReadFrontBuffer(0)
    grabber.ShouldRerenderOff()
    grabber.Update()
    return vtk_to_pil(grabber.GetOutput())


def vtk_to_pil(image):
    """A 2D vtkImageData as a Pillow image; VTK's first row is the lowest."""
    width, height, _ = image.GetDimensions()
    pixels = vtk_to_numpy(image.GetPointData().GetScalars()).reshape(height, width, -1)[::-1]
    pixels = np.ascontiguousarray(pixels.astype(np.uint8))
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).convert("RGBA")


def pil_to_vtk(picture, image):
    """Put a Pillow image into the vtkImageData `image` as RGBA."""
    pixels = np.ascontiguousarray(np.asarray(picture.convert("RGBA"))[::-1])
    image.SetDimensions(picture.size[0], picture.size[1], 1)
    image.GetPointData().SetScalars(numpy_to_vtk(pixels.reshape(-1, 4), deep=True))
