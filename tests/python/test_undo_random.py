"""Random programs that edit the scene, each taken back, judged by a fingerprint of the test's own.

What is protected: after a restore the scene is what it was, or the report names every node that is not; "complete" is
never said of a scene that differs. The fingerprint shares nothing with the helper's: it reads every property that has a
getter and a setter of the same name, and the bulk data byte by byte.

SLICER_URL names the Web Server of a Slicer whose scene may be cleared; PROGRAMS and SEED may change number and start.
`cargo test --test undo_random` runs this file.
"""
import json
import os
import random
import sys
import unittest

import test_slicer_helper as helper

PROGRAMS = int(os.environ.get("PROGRAMS", "300"))
SEED = int(os.environ.get("SEED", "20240"))

FINGERPRINT = r'''
import hashlib, vtk, slicer
from vtk.util.numpy_support import vtk_to_numpy

def undo_test_array(array):
    if array is None:
        return None
    try:
        values = vtk_to_numpy(array)
    except Exception:
        return [str(array.GetValue(i)) for i in range(array.GetNumberOfValues())]
    return [array.GetName(), str(values.dtype), list(values.shape), hashlib.sha1(values.tobytes()).hexdigest()]

def undo_test_data(data):
    if data is None:
        return None
    out = [data.GetClassName()]
    if data.IsA("vtkTable"):
        return out + [undo_test_array(data.GetColumn(i)) for i in range(data.GetNumberOfColumns())]
    if data.IsA("vtkImageData"):
        out.append([data.GetExtent(), data.GetSpacing(), data.GetOrigin()])
    if data.IsA("vtkPointSet") and data.GetPoints() is not None:
        out.append(undo_test_array(data.GetPoints().GetData()))
    if data.IsA("vtkPolyData"):
        for cells in (data.GetVerts(), data.GetLines(), data.GetPolys(), data.GetStrips()):
            out.append(undo_test_array(cells.GetConnectivityArray()) if cells.GetNumberOfCells() else None)
    for side in (data.GetPointData(), data.GetCellData()):
        out.append([undo_test_array(side.GetAbstractArray(i)) for i in range(side.GetNumberOfArrays())])
        out.append(side.GetScalars().GetName() if side.GetScalars() is not None else None)
    return out

def undo_test_simple(value):
    if isinstance(value, str) and value.endswith("_p_void"):  # an address
        raise TypeError
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float("%.9g" % value)
    if isinstance(value, (tuple, list)) and len(value) < 50 and all(isinstance(x, (int, float, str)) for x in value):
        return [undo_test_simple(x) for x in value]
    raise TypeError

# What follows from other things, or from rendering, or differs from one moment to the next by itself.
UNDO_TEST_SKIP = {
    "Scene", "MTime", "ReferenceCount", "Debug", "AddToScene", "InMRMLCallbackFlag", "DisableModifiedEvent", "ReadState",
    "WriteState", "UndoEnabled", "GlobalWarningDisplay", "ObjectName", "TempURI", "ViewArrangement", "MaximumNumberOfThreads",
}

def undo_test_properties(node):
    out, names = {}, set(dir(node))
    for name in sorted(names):
        short = name[3:]
        if not name.startswith("Get") or "Set" + short not in names or short in UNDO_TEST_SKIP or short.startswith("Nth"):
            continue
        try:
            out[short] = undo_test_simple(getattr(node, name)())
        except Exception:
            continue
    # These follow from the data, at the next rendering, while a flag says so.
    if hasattr(node, "GetScalarRangeFlag") and node.GetScalarRangeFlag() != node.UseManualScalarRange:
        out.pop("ScalarRange", None)
    if hasattr(node, "GetAutoWindowLevel") and node.GetAutoWindowLevel():
        for name in ("Window", "Level", "WindowLevelMin", "WindowLevelMax"):
            out.pop(name, None)
    return out

def undo_test_node(node):
    out = {"class": node.GetClassName(), "properties": undo_test_properties(node)}
    out["attributes"] = {n: node.GetAttribute(n) for n in (node.GetAttributeNames() or ())}
    roles = []
    node.GetNodeReferenceRoles(roles)
    references = {r: [node.GetNthNodeReferenceID(r, i) for i in range(node.GetNumberOfNodeReferences(r))] for r in roles}
    out["references"] = {r: ids for r, ids in references.items() if any(ids)}
    if node.IsA("vtkMRMLVolumeNode"):
        m = vtk.vtkMatrix4x4(); node.GetIJKToRASMatrix(m)
        out["geometry"] = [m.GetElement(r, c) for r in range(4) for c in range(4)]
        out["data"] = undo_test_data(node.GetImageData())
    elif node.IsA("vtkMRMLModelNode"):
        out["data"] = undo_test_data(node.GetMesh())
    elif node.IsA("vtkMRMLTableNode"):
        out["data"] = undo_test_data(node.GetTable())
    elif node.IsA("vtkMRMLTransformNode"):
        m = vtk.vtkMatrix4x4()
        if node.IsLinear():
            node.GetMatrixTransformToParent(m)
            out["data"] = [m.GetElement(r, c) for r in range(4) for c in range(4)]
        else:
            t = node.GetTransformToParent()
            out["data"] = [t.TransformPoint(x, y, z) for x in (0, 1.5) for y in (0, 2) for z in (0, 1)]
    elif node.IsA("vtkMRMLSegmentationNode"):
        s = node.GetSegmentation()
        out["data"] = []
        for i in range(s.GetNumberOfSegments()):
            segment, tag, names = s.GetNthSegment(i), vtk.reference(""), []
            segment.GetContainedRepresentationNames(names)
            segment.GetTags({}) if False else None
            segment.GetTag("TerminologyEntry", tag)
            reps = {n: undo_test_data(segment.GetRepresentation(n)) for n in names}
            out["data"].append([s.GetNthSegmentID(i), segment.GetName(), segment.GetColor(), segment.GetLabelValue(), str(tag), reps])
        d = node.GetDisplayNode()
        if d is not None:
            ids = [s.GetNthSegmentID(i) for i in range(s.GetNumberOfSegments())]
            out["segments shown"] = [[d.GetSegmentVisibility(i), d.GetSegmentOpacity3D(i), d.GetSegmentOpacity2DFill(i), d.GetSegmentVisibility3D(i)] for i in ids]
    elif node.IsA("vtkMRMLMarkupsNode"):
        n = node.GetNumberOfControlPoints()
        out["data"] = [[node.GetNthControlPointPosition(i), node.GetNthControlPointLabel(i), node.GetNthControlPointDescription(i),
                        node.GetNthControlPointLocked(i), node.GetNthControlPointVisibility(i), node.GetNthControlPointSelected(i),
                        node.GetNthControlPointPositionStatus(i)] for i in range(n)]
    elif node.IsA("vtkMRMLColorTableNode") and node.GetType() == node.User:
        table = node.GetLookupTable()
        out["data"] = [[node.GetColorName(i), table.GetTableValue(i)] for i in range(table.GetNumberOfTableValues())]
    elif node.IsA("vtkMRMLSequenceNode"):
        out["data"] = [[node.GetNthIndexValue(i), undo_test_node(node.GetNthDataNode(i)).get("data")] for i in range(node.GetNumberOfDataNodes())]
    elif node.IsA("vtkMRMLScriptedModuleNode"):
        out["data"] = {n: node.GetParameter(n) for n in node.GetParameterNames()}
    elif node.IsA("vtkMRMLSliceNode"):
        m = node.GetSliceToRAS()
        out["data"] = [undo_test_simple(m.GetElement(r, c)) for r in range(4) for c in range(4)]
    elif node.IsA("vtkMRMLVolumePropertyNode"):
        p = node.GetVolumeProperty()
        o = p.GetScalarOpacity()
        out["data"] = [[o.GetNodeValue(i, v) and None, list(v)] for v in ([0.0] * 4,) for i in range(o.GetSize())]
    return out

def undo_test_tree():
    tree = slicer.mrmlScene.GetSubjectHierarchyNode()
    def walk(item, path):
        kids = vtk.vtkIdList()
        tree.GetItemChildren(item, kids, False)
        for i in range(kids.GetNumberOfIds()):
            kid = kids.GetId(i)
            node = tree.GetItemDataNode(kid)
            if node is not None and node.GetHideFromEditors():
                continue
            name = path + " / " + tree.GetItemName(kid)
            names = tree.GetItemAttributeNames(kid)
            found.append([name, node.GetID() if node else None, {n: tree.GetItemAttribute(kid, n) for n in names}])
            walk(kid, name)
    found = []
    walk(tree.GetSceneItemID(), "")
    return sorted(found, key=str)

def undo_test_fingerprint():
    scene, nodes = slicer.mrmlScene, {}
    for i in range(scene.GetNumberOfNodes()):
        node = scene.GetNthNode(i)
        if node.IsA("vtkMRMLSubjectHierarchyNode") or node.IsA("vtkMRMLUnitNode") or node.IsA("vtkMRMLSliceDisplayNode"):
            continue
        if node.GetHideFromEditors() and not node.GetSaveWithScene():
            continue
        nodes[node.GetID()] = undo_test_node(node)
    return {"nodes": nodes, "tree": undo_test_tree(), "layout": slicer.app.layoutManager().layout}
'''
READ = FINGERPRINT + "\n__execResult = undo_test_fingerprint()"

BASE = helper.SCENE + helper.MORE + r'''
sh = slicer.mrmlScene.GetSubjectHierarchyNode()
folder = sh.CreateFolderItem(sh.GetSceneItemID(), "Study A")
sub = sh.CreateFolderItem(folder, "Series 1")
sh.SetItemParent(sh.GetItemByDataNode(volume), sub)
sh.SetItemParent(sh.GetItemByDataNode(points), folder)
sh.SetItemAttribute(folder, "kind", "study")
volume2 = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLScalarVolumeNode", "Second")
updateVolumeFromArray(volume2, np.ones((8, 9, 10), dtype=np.float32))
volume2.CreateDefaultDisplayNodes()
line = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLMarkupsLineNode", "Line")
line.AddControlPoint([0, 0, 0]); line.AddControlPoint([0, 30, 0])
bspline = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLTextNode", "Second note")
bspline.SetText("second")
table2 = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLTableNode", "Numbers")
column = vtk.vtkDoubleArray(); column.SetName("value")
for i in range(5): column.InsertNextValue(i * 1.5)
table2.AddColumn(column)
slicer.app.processEvents()
None
'''

PROLOGUE = r'''
import numpy as np, vtk
def pick(kind, k):
    found = [n for n in slicer.util.getNodesByClass(kind) if not n.GetHideFromEditors() and n.GetSaveWithScene()]
    return found[k % len(found)] if found else None
def some(k):
    found = [n for n in slicer.util.getNodesByClass("vtkMRMLStorableNode")
             if not n.GetHideFromEditors() and not n.IsA("vtkMRMLColorNode") and n.GetSaveWithScene()]
    return found[k % len(found)] if found else None
tree = slicer.mrmlScene.GetSubjectHierarchyNode()
'''
# {k}, {j}: small integers; {x}, {y}, {z}: lengths in mm; {u}: 0 to 1; {w}: a word.
EDITS = {
    "volumes": [
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n: arrayFromVolume(n)[{j} % 3] = {k}; arrayFromVolumeModified(n)",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n: arrayFromVolume(n)[:] += {j}",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n: updateVolumeFromArray(n, np.full((3, 4, {j} + 1), {k}, 'int16'))",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n: n.SetSpacing({u} + 0.1, 2, 3); n.SetOrigin({x}, {y}, {z})",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n: n.SetIJKToRASDirections(0, 1, 0, 1, 0, 0, 0, 0, -1)",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n: c = slicer.modules.volumes.logic().CloneVolume(slicer.mrmlScene, n, '{w}')",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n and n.GetImageData(): n.GetImageData().GetPointData().GetScalars().SetName('{w}')",
        "n = pick('vtkMRMLLabelMapVolumeNode', {k})\nif n: arrayFromVolume(n)[0, 0, 0] = {j}",
        "n = pick('vtkMRMLVectorVolumeNode', {k})\nif n: arrayFromVolume(n)[..., 0] = {k}; n.Modified()",
    ],
    "segmentations": [
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n: n.GetSegmentation().AddEmptySegment('', '{w}')",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n and n.GetSegmentation().GetNumberOfSegments(): n.GetSegmentation().RemoveSegment(n.GetSegmentation().GetNthSegmentID({j} % n.GetSegmentation().GetNumberOfSegments()))",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n and n.GetSegmentation().GetNumberOfSegments():\n    i = n.GetSegmentation().GetNthSegmentID(0)\n    a = arrayFromSegmentBinaryLabelmap(n, i)\n    a[:] = 0\n    a[0] = 1\n    updateSegmentBinaryLabelmapFromArray(a, n, i)",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n: s = n.GetSegmentation().GetNthSegment(0)\nif n and s: s.SetColor({u}, 0.5, 0.25); s.SetName('{w}')",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n and n.GetSegmentation().GetNthSegment(0): n.GetSegmentation().GetNthSegment(0).SetTag('TerminologyEntry', '{w}')",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n: n.CreateClosedSurfaceRepresentation()",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n: n.RemoveClosedSurfaceRepresentation()",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n and n.GetDisplayNode() and n.GetSegmentation().GetNumberOfSegments(): n.GetDisplayNode().SetSegmentVisibility(n.GetSegmentation().GetNthSegmentID(0), False); n.GetDisplayNode().SetSegmentOpacity3D(n.GetSegmentation().GetNthSegmentID(0), {u})",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n: n.GetSegmentation().RemoveAllSegments()",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n and n.GetSegmentation().GetNumberOfSegments() > 1: n.GetSegmentation().SetSegmentIndex(n.GetSegmentation().GetNthSegmentID(1), 0)",
    ],
    "models": [
        "n = pick('vtkMRMLModelNode', {k})\nif n and n.GetPolyData(): arrayFromModelPoints(n)[:] *= 1.5; arrayFromModelPointsModified(n)",
        "s = vtk.vtkCubeSource(); s.Update()\nn = pick('vtkMRMLModelNode', {k})\nif n: n.SetAndObservePolyData(s.GetOutput())",
        "s = vtk.vtkSphereSource(); s.SetRadius({u} * 30 + 1); s.Update()\nslicer.modules.models.logic().AddModel(s.GetOutput()).SetName('{w}')",
        "n = pick('vtkMRMLModelNode', {k})\nif n and n.GetPolyData():\n    a = vtk.vtkFloatArray(); a.SetName('{w}'); a.SetNumberOfTuples(n.GetPolyData().GetNumberOfPoints()); a.Fill({u})\n    n.AddPointScalars(a)",
    ],
    "markups": [
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n: n.AddControlPoint([{x}, {y}, {z}], '{w}')",
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n and n.GetNumberOfControlPoints(): n.SetNthControlPointPosition(0, {x}, {y}, {z})",
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n: n.RemoveAllControlPoints()",
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n and n.GetNumberOfControlPoints(): n.SetNthControlPointLabel(0, '{w}'); n.SetNthControlPointDescription(0, '{w}'); n.SetNthControlPointLocked(0, True)",
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n and n.GetNumberOfControlPoints(): n.SetNthControlPointVisibility(0, False); n.SetNthControlPointSelected(0, False)",
        "n = pick('vtkMRMLMarkupsROINode', {k})\nif n: n.SetSize(5 + {j}, 6, 7); n.SetCenter({x}, {y}, {z})",
        "n = pick('vtkMRMLMarkupsPlaneNode', {k})\nif n: n.SetNormal(1, 0, 0); n.SetOrigin({x}, 0, 0)",
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n: n.SetLocked(True); n.SetControlPointLabelFormat('%N {w}')",
        "n = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLMarkupsAngleNode', '{w}')\nfor p in ([0, 0, 0], [1, 0, 0], [0, {y}, 0]): n.AddControlPoint(p)",
        "n = pick('vtkMRMLMarkupsClosedCurveNode', {k})\nif n: n.SetCurveTypeToLinear()",
    ],
    "transforms": [
        "n = pick('vtkMRMLLinearTransformNode', {k})\nm = vtk.vtkMatrix4x4(); m.SetElement(0, 3, {x}); m.SetElement(1, 1, 1 + {u})\nif n: n.SetMatrixTransformToParent(m)",
        "n, p = some({k}), pick('vtkMRMLLinearTransformNode', {j})\nif n and p and hasattr(n, 'SetAndObserveTransformNodeID') and n is not p and not (n.IsA('vtkMRMLTransformNode')): n.SetAndObserveTransformNodeID(p.GetID())",
        "n = some({k})\nif n and hasattr(n, 'HardenTransform') and n.GetParentTransformNode(): n.HardenTransform()",
        "n = pick('vtkMRMLGridTransformNode', {k})\nif n: n.GetTransformToParent().GetDisplacementGrid().GetPointData().GetScalars().Fill({u})",
        "n = pick('vtkMRMLLinearTransformNode', {k})\nif n: n.Inverse()",
        "t = slicer.mrmlScene.AddNewNodeByClass('vtkMRMLLinearTransformNode', '{w}')\nn = some({k})\nif n and hasattr(n, 'SetAndObserveTransformNodeID') and not n.IsA('vtkMRMLTransformNode'): n.SetAndObserveTransformNodeID(t.GetID())",
    ],
    "tables and texts": [
        "n = pick('vtkMRMLTableNode', {k})\nif n: n.AddEmptyRow(); n.AddColumn()",
        "n = pick('vtkMRMLTableNode', {k})\nif n and n.GetNumberOfRows() and n.GetNumberOfColumns(): n.SetCellText(0, 0, '{j}')",
        "n = pick('vtkMRMLTableNode', {k})\nif n: n.RemoveAllColumns()",
        "n = pick('vtkMRMLTextNode', {k})\nif n: n.SetText('{w} {k}')",
        "n = pick('vtkMRMLScriptedModuleNode', 0) or slicer.mrmlScene.GetFirstNodeByName('settings')\nif n: n.SetParameter('{w}', '{k}')",
        "n = slicer.mrmlScene.GetFirstNodeByName('colours')\nif n: n.SetColor({j} % 4, '{w}', {u}, 0, 0, 1)",
        "n = slicer.mrmlScene.GetFirstNodeByName('sequence')\nv = pick('vtkMRMLLabelMapVolumeNode', 0)\nif n and v: n.SetDataNodeAtValue(v, '{k}')",
    ],
    "display": [
        "n = some({k})\nd = n.GetDisplayNode() if n and hasattr(n, 'GetDisplayNode') else None\nif d: d.SetVisibility(not d.GetVisibility()); d.SetOpacity({u}); d.SetColor({u}, 1, 0)",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nd = n.GetDisplayNode() if n else None\nif d and d.IsA('vtkMRMLScalarVolumeDisplayNode'): d.SetAutoWindowLevel(False); d.SetWindowLevel({k} + 1, {j}); d.SetInterpolate(0)",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n and n.GetDisplayNode(): n.GetDisplayNode().SetAndObserveColorNodeID('vtkMRMLColorTableNodeRainbow')",
        "n = some({k})\nd = n.GetDisplayNode() if n and hasattr(n, 'GetDisplayNode') else None\nif d: slicer.mrmlScene.RemoveNode(d)",
        "n = pick('vtkMRMLMarkupsNode', {k})\nif n: n.CreateDefaultDisplayNodes(); n.GetDisplayNode().SetGlyphScale({u} * 5 + 0.5); n.GetDisplayNode().SetTextScale({u} * 3 + 1); n.GetDisplayNode().SetSelectedColor({u}, 0, 1)",
        "n = pick('vtkMRMLModelNode', {k})\nif n and n.GetDisplayNode(): n.GetDisplayNode().SetRepresentation(1); n.GetDisplayNode().SetVisibility2D(True); n.GetDisplayNode().SetLineWidth({j} + 1)",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nif n and n.GetImageData(): slicer.modules.volumerendering.logic().CreateDefaultVolumeRenderingNodes(n)",
        "n = some({k})\nd = n.GetDisplayNode() if n and hasattr(n, 'GetDisplayNode') else None\nif d: d.AddViewNodeID('vtkMRMLViewNode1'); d.SetFolderDisplayOverrideAllowed(False)",
    ],
    "hierarchy": [
        "f = tree.CreateFolderItem(tree.GetSceneItemID(), '{w}')\nn = some({k})\nif n: tree.SetItemParent(tree.GetItemByDataNode(n), f)",
        "n = some({k})\nif n: tree.SetItemParent(tree.GetItemByDataNode(n), tree.GetSceneItemID())",
        "f = tree.GetItemByName('Study A')\nif f: tree.SetItemName(f, '{w}'); tree.SetItemAttribute(f, 'kind', '{w}')",
        "f = tree.GetItemByName('Series 1')\nif f: tree.RemoveItem(f, False, False)",
        "f = tree.GetItemByName('Study A')\nif f: tree.RemoveItem(f, False, True)",
        "n = some({k})\nif n: tree.SetItemAttribute(tree.GetItemByDataNode(n), '{w}', '{k}')",
        "a, b = tree.GetItemByName('Series 1'), tree.GetSceneItemID()\nif a: tree.SetItemParent(a, b)",
    ],
    "views": [
        "slicer.app.layoutManager().setLayout([2, 3, 4, 6, 7, 8][{k} % 6])",
        "n = slicer.mrmlScene.GetNodeByID(['vtkMRMLSliceNodeRed', 'vtkMRMLSliceNodeGreen', 'vtkMRMLSliceNodeYellow'][{k} % 3])\nn.SetSliceOffset({x})\nn.SetSliceVisible(True)",
        "n = slicer.mrmlScene.GetNodeByID('vtkMRMLSliceNodeRed')\n[n.SetOrientationToSagittal, n.SetOrientationToCoronal, n.SetOrientationToAxial][{k} % 3]()\nn.SetFieldOfView({j} * 10 + 20, 100, 1)",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\nsetSliceViewerLayers(background=n, foreground=None, foregroundOpacity={u})",
        "c = slicer.mrmlScene.GetFirstNodeByClass('vtkMRMLCameraNode')\nc.SetPosition({x}, {y}, 500)\nc.SetFocalPoint(0, 0, {z})\nc.SetParallelProjection(True)",
        "v = slicer.mrmlScene.GetFirstNodeByClass('vtkMRMLViewNode')\nv.SetBackgroundColor({u}, 0, 0)\nv.SetBoxVisible(False)\nv.SetAxisLabelsVisible(False)",
        "slicer.util.resetSliceViews()",
        "n = pick('vtkMRMLScalarVolumeNode', {k})\ns = slicer.mrmlScene.GetNodeByID('vtkMRMLSelectionNodeSingleton')\nif n: s.SetActiveVolumeID(n.GetID())",
        "slicer.mrmlScene.GetNodeByID('vtkMRMLCrosshairNodedefault').SetCrosshairMode({k} % 3)",
    ],
    "deletions": [
        "n = some({k})\nif n: slicer.mrmlScene.RemoveNode(n)",
        "for n in list(slicer.util.getNodesByClass('vtkMRMLMarkupsNode'))[:{j} + 1]: slicer.mrmlScene.RemoveNode(n)",
        "n = pick('vtkMRMLLinearTransformNode', {k})\nif n: slicer.mrmlScene.RemoveNode(n)",
        "n = pick('vtkMRMLSegmentationNode', {k})\nif n: slicer.mrmlScene.RemoveNode(n)",
        "n = some({k})\nif n and hasattr(n, 'GetStorageNode'):\n    n.CreateDefaultStorageNode() if hasattr(n, 'CreateDefaultStorageNode') else n.AddDefaultStorageNode()\n    if n.GetStorageNode(): slicer.mrmlScene.RemoveNode(n.GetStorageNode())",
    ],
    "names and references": [
        "n = some({k})\nif n: n.SetName('{w}'); n.SetDescription('{w}')",
        "n = some({k})\nif n: n.SetAttribute('{w}', '{k}'); n.SetSelectable(0)",
        "n, m = some({k}), some({j})\nif n and m: n.SetNodeReferenceID('{w}', m.GetID()); n.AddNodeReferenceID('{w}', m.GetID())",
        "n = some({k})\nif n and hasattr(n, 'AddDefaultStorageNode'): n.AddDefaultStorageNode('/nowhere/{w}')",
        "n = some({k})\nif n: n.SetHideFromEditors(True)",
        "n = some({k})\nif n: n.SetSaveWithScene(False)",
        "n = some({k})\nif n: n.RemoveAttribute('{w}'); n.SetUndoEnabled(True)",
    ],
    "scene": [
        "slicer.mrmlScene.Clear()",
        "slicer.mrmlScene.Clear(0)",
        "for n in list(slicer.util.getNodesByClass('vtkMRMLDisplayableNode')):\n    if not n.GetHideFromEditors(): slicer.mrmlScene.RemoveNode(n)",
        "slicer.mrmlScene.StartState(slicer.vtkMRMLScene.BatchProcessState)\nn = some({k})\nif n: slicer.mrmlScene.RemoveNode(n)\nslicer.mrmlScene.EndState(slicer.vtkMRMLScene.BatchProcessState)",
        "copy = slicer.vtkMRMLScene()\nn = some({k})\nif n: slicer.mrmlScene.AddNode(slicer.mrmlScene.CreateNodeByClass(n.GetClassName()))",
    ],
}
WEIGHTS = {"scene": 1, "deletions": 3}


def program(rng):
    kinds = list(EDITS)
    lines = [PROLOGUE]
    for _ in range(rng.randint(1, 6)):
        kind = rng.choices(kinds, [WEIGHTS.get(kind, 4) for kind in kinds])[0]
        values = dict(
            k=rng.randrange(40), j=rng.randrange(6), x=round(rng.uniform(-80, 80), 3), y=round(rng.uniform(1, 80), 3),
            z=round(rng.uniform(-80, 80), 3), u=round(rng.random(), 3), w=rng.choice(["alpha", "beta", "größe", "a b", "x"]),
        )
        edit = rng.choice(EDITS[kind])
        for name, value in values.items():
            edit = edit.replace("{%s}" % name, str(value))
        lines.append("# %s\n%s" % (kind, edit))
    if rng.random() < 0.5:
        lines.append("slicer.app.processEvents()")
    fails = rng.random() < 0.5
    if fails:
        lines.append("raise ValueError('on purpose')")
    return "\n".join(lines) + "\nNone\n", fails


def difference(before, after):
    """What differs: {node id or part: [aspects]}."""
    found = {}
    for key in sorted(set(before["nodes"]) | set(after["nodes"])):
        old, new = before["nodes"].get(key), after["nodes"].get(key)
        if old is None or new is None:
            found[key] = ["came" if old is None else "went"]
            continue
        wrong = [part for part in sorted(set(old) | set(new)) if old.get(part) != new.get(part) and part != "properties"]
        names = set(old["properties"]) | set(new["properties"])
        wrong += [
            "%s (%r → %r)" % (name, old["properties"].get(name), new["properties"].get(name))
            for name in sorted(names) if old["properties"].get(name) != new["properties"].get(name)
        ]
        if wrong:
            found[key] = wrong
    for part in ("tree", "layout"):
        if before[part] != after[part]:
            gone = [one for one in before[part] if one not in after[part]] if part == "tree" else before[part]
            come = [one for one in after[part] if one not in before[part]] if part == "tree" else after[part]
            found[part] = ["%r → %r" % (gone, come)]
    return found


class RandomEdits(unittest.TestCase):
    def setUp(self):
        self.trail = []
        self.addCleanup(self.tell_trail)

    def tell_trail(self):
        """When Slicer itself broke off, the programs that led there."""
        if self.trail and len(self.trail) < PROGRAMS:
            for number, code in self.trail[-3:]:
                print("program %d:\n%s" % (number, code[len(PROLOGUE) :]))

    def test_random_programs_are_taken_back(self):
        if not helper.URL:
            self.skipTest("SLICER_URL is not set: there is no Slicer to test in")
        self.assertEqual(helper.install()["helper"], "ready")
        rng, wrong, exact, named, fresh = random.Random(SEED), [], 0, 0, True
        causes, trail = {}, self.trail
        for number in range(PROGRAMS):
            code, fails = program(rng)
            if fresh:
                helper.post("slicer.mrmlScene.Clear(0)\nslicer.app.layoutManager().setLayout(3)\n__execResult = 1")
                made = helper.run(BASE, timeout_ms=60000)
                self.assertTrue(made["ok"], made["error"])
            before = helper.post(READ)
            trail.append((number, code))
            outcome = helper.run(code, timeout_ms=60000)
            report = outcome["restored"] if not outcome["ok"] else helper.result("undo", run=outcome["id"])
            after = helper.post(READ)
            found = difference(before, after)
            fresh = bool(found) or number % 25 == 24
            edits = "\n".join(code.splitlines()[len(PROLOGUE.splitlines()):])
            if not found and report["complete"]:
                exact += 1
            elif found and not report["complete"] and all(told(key, before, report) for key in found):
                named += 1
                print("program %d: told as not restored: %s" % (number, report["missing"][:4]))
            else:
                for key, parts in found.items():
                    causes.setdefault(key + ": " + "; ".join(parts)[:150], number)
                wrong.append("program %d (%s)\n%s\nreport %s\ndiffers %s" % (
                    number, "fails" if fails else "undone", edits, json.dumps(report, ensure_ascii=False), json.dumps(found, ensure_ascii=False)[:1500],
                ))
        print("%d programs: %d restored exactly, %d told exactly what is missing, %d wrong" % (PROGRAMS, exact, named, len(wrong)))
        for cause, number in causes.items():
            print("  (program %d) %s" % (number, cause))
        self.assertEqual(wrong, [], "\n\n".join(wrong[:8]))


def told(key, before, report):
    name = before["nodes"].get(key, {}).get("properties", {}).get("Name") or key
    return any(name in line or key in line for line in report["missing"])


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    unittest.main()
