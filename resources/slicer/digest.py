"""Fingerprints of what MRML nodes hold.

A fingerprint answers two questions: did a run change this node, and did a restore bring the old content back? Modified
times answer neither: code can change voxels in place without touching them, and a restore makes new ones. So contents
are hashed: bulk data byte by byte (above `WHOLE_LIMIT` a regular sample of blocks), everything else from what the node
prints of itself, without the lines that say nothing of its content (addresses, times, observers, derived values).
"""
import hashlib
import re
import threading
from collections import OrderedDict

WHOLE_LIMIT = 64 << 20  # bytes of one array that are hashed whole
SAMPLE_BLOCK = 4096
SAMPLE_STEP = 64  # above the limit every 64th block is hashed
PIECE = 8 << 20

ADDRESS = re.compile(r"\(?0x[0-9a-fA-F]+\)?")
INDENT = re.compile(r"[ \t]*")
# Lines that differ although the content is the same.
NOISE = (
    "MTime", "Modified Time", "Reference Count", "Debug", "UpdateTime", "Compute Time", "CellsBounds Time",
    "Information", "Data Released", "Global Release Data", "ActiveComponents", "TemporaryURL", "UndoEnabled",
)
# Lines told by an aspect of their own.
ELSEWHERE = ("ID", "ClassName", "Name", "TransformNodeID", "DisplayNodeIDs", "SingletonTag", "Scene")
# Blocks that are derived, hashed as bulk data, or told by an aspect of their own.
BLOCKS = (
    "Registered Events", "Registered Observers", "Node references", "Attributes", "ImageData", "PolyData", "Mesh",
    "UnstructuredGrid", "InteractionHandleToWorldMatrix", "XYToRAS", "UVWToRAS", "Measurements", "Segmentation",
    "Segment converter", "TransformToParent", "TransformFromParent", "Transform", "LookupTable", "StoredTime",
)
# Lines that only follow from the data while another line says so: they are set at the next rendering.
DERIVED = (
    (re.compile(r"ScalarRangeFlagAsString: (?!UseManual)"), ("ScalarRange",)),
    (re.compile(r"AutoWindowLevel: *1"), ("Window", "Level")),
    (re.compile(r"AutoThreshold: *1"), ("UpperThreshold", "LowerThreshold")),
)
GEOMETRY = ("Spacing", "Origin", "IJKToRASDirections", "MatrixTransformToParent", "Center of transformation")

_facts = OrderedDict()


def remember(key, make):
    """A value that depends only on a content hash, made once. Keeps the last 500."""
    if key in _facts:
        _facts.move_to_end(key)
        return _facts[key]
    value = _facts[key] = make()
    while len(_facts) > 500:
        _facts.popitem(last=False)
    return value


def digest(*parts):
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogatepass"))
        state.update(b"\0")
    return state.hexdigest()


def bytes_digest(buffer):
    """Hash of a flat bytes-like object. Large ones are hashed in pieces by two threads (hashing frees the GIL)."""
    view = memoryview(buffer)
    size = view.nbytes
    if size > WHOLE_LIMIT:
        state = hashlib.blake2b(str(size).encode(), digest_size=16)
        for start in range(0, size, SAMPLE_BLOCK * SAMPLE_STEP):
            state.update(view[start : start + SAMPLE_BLOCK])
        state.update(view[-SAMPLE_BLOCK:])
        return state.hexdigest()
    starts = list(range(0, size, PIECE)) or [0]
    results = [None] * len(starts)

    def work(first):
        for index in range(first, len(starts), 2):
            piece = view[starts[index] : starts[index] + PIECE]
            results[index] = hashlib.blake2b(piece, digest_size=16).digest()

    second = threading.Thread(target=work, args=(1,), daemon=True) if len(starts) > 1 else None
    if second is not None:
        second.start()
    work(0)
    if second is not None:
        second.join()
    return hashlib.blake2b(b"".join(results) + str(size).encode(), digest_size=16).hexdigest()


def numpy_of(array):
    """A numpy view of a VTK array, or None for arrays that have none (bits, strings, implicit arrays)."""
    from vtk.util.numpy_support import vtk_to_numpy

    try:
        return vtk_to_numpy(array)
    except Exception:
        return None


def array_digest(array):
    if array is None:
        return "none"
    values = numpy_of(array)
    if values is None:
        count = array.GetNumberOfValues() if hasattr(array, "GetNumberOfValues") else 0
        read = getattr(array, "GetValue", None)
        shown = [read(index) for index in range(min(count, 100000))] if read else []
        return digest(array.GetClassName(), count, shown)
    values = values if values.flags["C_CONTIGUOUS"] else values.copy()
    head = (array.GetName(), str(values.dtype), values.shape)
    return digest(head, bytes_digest(values.reshape(-1).view("uint8"))) if values.size else digest(head)


def attribute_digests(attributes):
    count = attributes.GetNumberOfArrays()
    return [array_digest(attributes.GetAbstractArray(index)) for index in range(count)]


def data_digest(data):
    """Hash of a vtkDataObject: geometry, topology and all arrays."""
    if data is None:
        return "none"
    parts = [data.GetClassName()]
    if data.IsA("vtkTable"):
        parts += attribute_digests(data.GetRowData())
        return digest(*parts)
    if data.IsA("vtkImageData"):
        parts += [data.GetExtent(), data.GetSpacing(), data.GetOrigin()]
        if data.IsA("vtkOrientedImageData"):
            parts.append(oriented_matrix(data))
    if data.IsA("vtkPointSet") and data.GetPoints() is not None:
        parts.append(array_digest(data.GetPoints().GetData()))
    if data.IsA("vtkPolyData"):
        for cells in (data.GetVerts(), data.GetLines(), data.GetPolys(), data.GetStrips()):
            parts.append(cells_digest(cells))
    elif data.IsA("vtkUnstructuredGrid"):
        parts += [cells_digest(data.GetCells()), array_digest(data.GetCellTypesArray())]
    if data.IsA("vtkDataSet"):
        parts += ["points"] + attribute_digests(data.GetPointData())
        parts += ["cells"] + attribute_digests(data.GetCellData())
    return digest(*parts)


def cells_digest(cells):
    if cells is None or cells.GetNumberOfCells() == 0:
        return "none"
    return digest(array_digest(cells.GetConnectivityArray()), array_digest(cells.GetOffsetsArray()))


def oriented_matrix(image):
    import vtk

    matrix = vtk.vtkMatrix4x4()
    image.GetImageToWorldMatrix(matrix)
    return matrix_values(matrix)


def matrix_values(matrix):
    return [matrix.GetElement(row, column) for row in range(4) for column in range(4)]


def transform_digest(transform):
    """Hash of a VTK transform of any kind, also of chains."""
    if transform is None:
        return "none"
    kind = transform.GetClassName()
    if transform.IsA("vtkLinearTransform") or transform.IsA("vtkHomogeneousTransform"):
        transform.Update()
        return digest("linear", matrix_values(transform.GetMatrix()))
    parts = [kind, transform.GetInverseFlag() if hasattr(transform, "GetInverseFlag") else 0]
    if hasattr(transform, "GetDisplacementGrid"):
        parts.append(data_digest(transform.GetDisplacementGrid()))
    if hasattr(transform, "GetCoefficientData"):
        parts.append(data_digest(transform.GetCoefficientData()))
    for name in ("GetSourceLandmarks", "GetTargetLandmarks"):
        points = getattr(transform, name)() if hasattr(transform, name) else None
        parts.append(array_digest(points.GetData()) if points is not None else "none")
    if hasattr(transform, "GetConcatenatedTransform"):
        for index in range(transform.GetNumberOfConcatenatedTransforms()):
            parts.append(transform_digest(transform.GetConcatenatedTransform(index)))
    return digest(*parts)


def printed(node, extra=()):
    """What the node prints of itself, reduced to lines that tell of its properties."""
    kept, skip_below = [], None
    told = str(node)
    derived = tuple(name for flag, names in DERIVED if flag.search(told) for name in names)
    for line in told.splitlines()[1:]:
        stripped = line.strip()
        if not stripped:
            continue
        indent = len(INDENT.match(line).group())
        if skip_below is not None:
            if indent > skip_below:
                continue
            skip_below = None
        key = re.split(r"[:=\[(]", stripped, maxsplit=1)[0].strip()
        if key in BLOCKS or key in extra:
            skip_below = indent
            continue
        if key in NOISE or key in derived or (indent <= 2 and key in ELSEWHERE):
            continue
        kept.append(ADDRESS.sub("", line.rstrip()))
    return "\n".join(kept)


def references(node):
    """All node references but those to display, storage and parent transform: {role: [ids]}."""
    return {role: ids for role, ids in all_references(node).items() if role not in ("display", "storage", "transform")}


def all_references(node):
    out = {}
    names = []
    try:
        node.GetNodeReferenceRoles(names)
    except TypeError:
        names = [node.GetNthNodeReferenceRole(index) for index in range(node.GetNumberOfNodeReferenceRoles())]
    for role in names:
        count = node.GetNumberOfNodeReferences(role)
        ids = [node.GetNthNodeReferenceID(role, index) or "" for index in range(count)]
        if any(ids):
            out[role] = ids
    return out


def attributes(node):
    names = node.GetAttributeNames() or ()
    return {name: node.GetAttribute(name) for name in names}
