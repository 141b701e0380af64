"""Volumes and displacement grids as NRRD in the form of Slicer's web server: raw, little endian, LPS."""

import numpy as np
import vtk

SHORT_NAMES = (b"short", b"short int", b"signed short", b"signed short int", b"int16", b"int16_t")
ACCEPTED = (  # field, values that can be read, error text
    (b"type", SHORT_NAMES, "Can only read short volumes"),
    (b"dimension", (b"3",), "Can only read 3D, 1 component volumes"),
    (b"endian", (b"little",), "Can only read little endian"),
    (b"encoding", (b"raw",), "Can only read raw encoding"),
    (b"space", (b"left-posterior-superior",), "Can only read space in LPS"),
)
LPS_SIGNS = (-1, -1, 1)  # RAS to LPS and back


def _header(kind, sizes, directions, origin, kinds):
    lines = (
        "NRRD0004",
        "# Complete NRRD file format specification at:",
        "# http://teem.sourceforge.net/nrrd/format.html",
        f"type: {kind}",
        f"dimension: {len(kinds.split())}",
        "space: left-posterior-superior",
        f"sizes: {sizes}",
        f"space directions: {directions}",
        f"kinds: {kinds}",
        "endian: little",
        "encoding: raw",
        f"space origin: {origin}",
    )
    return ("\n".join(lines) + "\n\n").encode()


def _vector_text(values):
    return "(" + ",".join(map(str, values)) + ")"


def _lps_column(matrix, column):
    """A column of an IJK to RAS matrix in LPS."""
    values = [matrix.GetElement(row, column) for row in range(3)]
    return [sign * value if sign < 0 else value for sign, value in zip(LPS_SIGNS, values)]


def volume_to_nrrd(node, voxels):
    """A scalar volume; types other than short and double are converted to short."""
    image = node.GetImageData()
    kind = image.GetScalarTypeAsString()
    if kind not in ("short", "double"):
        voxels, kind = np.array(voxels, dtype="int16"), "short"
    matrix = vtk.vtkMatrix4x4()
    node.GetIJKToRASMatrix(matrix)
    directions = " ".join(_vector_text(_lps_column(matrix, column)) for column in range(3))
    sizes = " ".join(map(str, image.GetDimensions()))
    origin = _vector_text(_lps_column(matrix, 3))
    return _header(kind, sizes, directions, origin, "domain domain domain") + voxels.tobytes()


def grid_to_nrrd(node, displacements):
    """The displacement grid of a grid transform."""
    grid = node.GetTransformFromParent().GetDisplacementGrid()
    spacing, origin = grid.GetSpacing(), grid.GetOrigin()
    directions = "(%g,0,0) (0,%g,0) (0,0,%g)" % (-spacing[0], -spacing[1], spacing[2])
    sizes = "3 " + " ".join(map(str, grid.GetDimensions()))
    start = "(%g,%g,%g)" % (-origin[0], -origin[1], origin[2])
    vectors = np.array(displacements) * np.array(LPS_SIGNS)
    return _header("float", sizes, directions, start, "vector domain domain domain") + vectors.tobytes()


def _vector(text):
    return [float(number) for number in text.strip(b"() ").split(b",")]


def read_nrrd(body):
    """Dimensions, IJK to RAS matrix and voxel bytes of a short volume.  Raises RuntimeError for any other NRRD."""
    if body[:4] != b"NRRD":
        raise RuntimeError("Cannot load non-nrrd file (magic is %s)" % body[:4])
    header_end = body.find(b"\n\n")
    fields = dict(line.split(b": ", 1) for line in body[:header_end].split(b"\n") if b": " in line)
    for field, values, complaint in ACCEPTED:
        if fields[field] not in values:
            raise RuntimeError(complaint)
    origin = _vector(fields[b"space origin"])
    columns = [_vector(text) for text in fields[b"space directions"].split(b")")[:3]]
    matrix = vtk.vtkMatrix4x4()
    for row, sign in enumerate(LPS_SIGNS):
        matrix.SetElement(row, 3, sign * origin[row])
        for column in range(3):
            matrix.SetElement(row, column, sign * columns[column][row])
    return [int(size) for size in fields[b"sizes"].split()], matrix, body[header_end + 2 :]
