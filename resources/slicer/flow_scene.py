"""The verbs of guided workflows that work on the scene: segments, markups, views, tables.

Nodes come as ids and are given back as ids. The segment verbs go through the Segment Editor's own effects, with an editor
node of their own, so that what the person has open in the Segment Editor stays as it is.
"""
import slicer
import vtk

from slicer_ai_agent_helper.flow_ui import Failed, node


def sample(name):
    """Loads sample data of the SampleData module; gives the id of the first node."""
    import SampleData

    loaded = SampleData.SampleDataLogic().downloadSamples(name)
    loaded = loaded if isinstance(loaded, (list, tuple)) else [loaded]
    loaded = [one for one in loaded if one is not None]
    if not loaded:
        raise Failed("The sample data %s could not be loaded." % name)
    return loaded[0].GetID()


def volume_range(volume):
    """The lowest and the highest value of a volume."""
    image = node(volume).GetImageData()
    if image is None:
        raise Failed("%s has no voxels." % node(volume).GetName())
    return list(image.GetScalarRange())


def segment_new(volume, name):
    """A segmentation with the geometry of a volume."""
    volume = node(volume)
    made = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentationNode", name)
    made.CreateDefaultDisplayNodes()
    made.SetReferenceImageGeometryParameterFromVolumeNode(volume)
    made.SetAndObserveTransformNodeID(volume.GetTransformNodeID())
    return made.GetID()


def segment_add(segmentation, name):
    """An empty segment; gives its id."""
    return node(segmentation).GetSegmentation().AddEmptySegment("", name)


def segment_effect(segmentation, volume, segment, effect, **parameters):
    """Applies an effect of the Segment Editor with these parameters."""
    segmentation, volume = node(segmentation), node(volume)
    if segmentation.GetSegmentation().GetSegment(segment) is None:
        raise Failed("%s has no segment %s." % (segmentation.GetName(), segment))
    widget = slicer.qMRMLSegmentEditorWidget()
    widget.setMRMLScene(slicer.mrmlScene)
    editor = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLSegmentEditorNode")
    try:
        widget.setMRMLSegmentEditorNode(editor)
        widget.setSegmentationNode(segmentation)
        set_source = getattr(widget, "setSourceVolumeNode", None) or widget.setMasterVolumeNode
        set_source(volume)
        widget.setCurrentSegmentID(segment)
        widget.setActiveEffectByName(effect)
        active = widget.activeEffect()
        if active is None:
            raise Failed("This Slicer has no Segment Editor effect %s." % effect)
        for name, value in parameters.items():
            active.setParameter(name, str(value))
        active.self().onApply()
        widget.setActiveEffectByName(None)
    finally:
        widget.setMRMLSegmentEditorNode(None)
        slicer.mrmlScene.RemoveNode(editor)


def segment_threshold(segmentation, volume, segment, low, high):
    segment_effect(segmentation, volume, segment, "Threshold", MinimumThreshold=low, MaximumThreshold=high)


def segment_surface(segmentation):
    """The closed surface, shown in the 3D views."""
    segmentation = node(segmentation)
    if not segmentation.CreateClosedSurfaceRepresentation():
        raise Failed("No closed surface could be made of %s. Is it empty?" % segmentation.GetName())
    segmentation.GetDisplayNode().SetVisibility3D(True)


def segment_statistics(segmentation, volume, name="Statistics"):
    """A table with the figures of the segments."""
    import SegmentStatistics

    segmentation, volume = node(segmentation), node(volume)
    there = slicer.mrmlScene.GetSingletonNode("SegmentStatistics", "vtkMRMLScriptedModuleNode") is not None
    logic = SegmentStatistics.SegmentStatisticsLogic()
    parameters = logic.getParameterNode()
    former = {key: parameters.GetParameter(key) for key in ("Segmentation", "ScalarVolume")}
    try:
        parameters.SetParameter("Segmentation", segmentation.GetID())
        parameters.SetParameter("ScalarVolume", volume.GetID())
        logic.computeStatistics()
        table = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLTableNode", name)
        logic.exportToTable(table)
    finally:
        # The module's own settings are as they were; an undo leaves singletons alone, so a new one must not stay.
        for key, value in former.items():
            parameters.SetParameter(key, value or "")
        if not there:
            slicer.mrmlScene.RemoveNode(parameters)
    return table.GetID()


def markup_new(kind, name):
    """A markup: a class name, or point, line, angle, curve, plane or roi."""
    classes = {"point": "Fiducial", "line": "Line", "angle": "Angle", "curve": "Curve", "plane": "Plane", "roi": "ROI"}
    class_name = "vtkMRMLMarkups%sNode" % classes[kind] if kind in classes else kind
    made = slicer.mrmlScene.AddNewNodeByClass(class_name, name)
    if made is None:
        raise Failed("There is no kind of markup called %s." % kind)
    made.CreateDefaultDisplayNodes()
    return made.GetID()


def markup_place(markup, persistent=True):
    """Turns place mode on for a markup."""
    logic = slicer.modules.markups.logic()
    logic.SetActiveList(node(markup))
    logic.StartPlaceMode(1 if persistent else 0)


def markup_stop():
    """Turns place mode off."""
    interaction = slicer.app.applicationLogic().GetInteractionNode()
    interaction.SetCurrentInteractionMode(interaction.ViewTransform)


def markup_points(markup, points):
    """Places control points at these positions (RAS, mm)."""
    markup = node(markup)
    for point in points:
        if len(point) != 3:
            raise Failed("A point is three numbers: right, anterior, superior in mm.")
        markup.AddControlPointWorld(vtk.vtkVector3d(*map(float, point)))


def markup_handles(markup, on=True):
    display = node(markup).GetDisplayNode()
    if display is not None:
        display.SetHandlesInteractive(bool(on))


def markup_views(markup, views):
    """Shows a markup only in these views, by their layout names."""
    display = node(markup).GetDisplayNode()
    known = {
        one.GetLayoutName() or one.GetName(): one
        for kind in ("vtkMRMLSliceNode", "vtkMRMLViewNode")
        for one in slicer.util.getNodesByClass(kind)
    }
    wanted = [known.get(name) for name in views]
    if None in wanted:
        raise Failed("There is no view %s. There are: %s." % (views[wanted.index(None)], ", ".join(sorted(known))))
    display.RemoveAllViewNodeIDs()
    for one in wanted:
        display.AddViewNodeID(one.GetID())


def layout(name):
    """A layout by the name of its constant, for example FourUpView, or by its number."""
    kind = slicer.vtkMRMLLayoutNode
    number = name if isinstance(name, int) else getattr(kind, "SlicerLayout%s" % name, None)
    if number is None:
        raise Failed("There is no layout called %s." % name)
    slicer.app.layoutManager().setLayout(number)


def slice_node(view):
    widget = slicer.app.layoutManager().sliceWidget(view)
    if widget is None:
        raise Failed("There is no slice view %s." % view)
    return widget.mrmlSliceNode()


def slice_show3d(view, on=True):
    slice_node(view).SetSliceVisible(bool(on))


def slice_fov_match(view, on=True):
    """Field of view and spacing of the slice in 3D as in 2D."""
    found = slice_node(view)
    found.SetSliceResolutionMode(found.SliceResolutionMatch2DView if on else found.SliceResolutionMatchVolumes)


def slice_intersections(visible=True, interactive=True):
    logic = slicer.app.applicationLogic()
    logic.SetIntersectingSlicesEnabled(slicer.vtkMRMLApplicationLogic.IntersectingSlicesVisibility, bool(visible))
    logic.SetIntersectingSlicesEnabled(slicer.vtkMRMLApplicationLogic.IntersectingSlicesInteractive, bool(interactive))


def slice_reset():
    slicer.util.resetSliceViews()


def slice_background(volume, foreground=None, opacity=None):
    slicer.util.setSliceViewerLayers(
        background=node(volume), foreground=node(foreground) if foreground else None, foregroundOpacity=opacity, fit=True
    )


def node_visible(value, on=True):
    found = node(value)
    if found.GetDisplayNode() is None:
        raise Failed("%s cannot be shown." % found.GetName())
    found.SetDisplayVisibility(bool(on))


def table_get(table):
    """The rows of a table node, each a dictionary of texts by column."""
    table = node(table)
    names = [table.GetColumnName(index) for index in range(table.GetNumberOfColumns())]
    return [
        {name: table.GetCellText(row, index) for index, name in enumerate(names)} for row in range(table.GetNumberOfRows())
    ]


def table_set(table, row, column, text):
    if not node(table).SetCellText(row, node(table).GetColumnIndex(column), str(text)):
        raise Failed("The table has no cell in row %s, column %s." % (row, column))


def remove_nodes(values):
    """Removes those of the nodes that are there."""
    for value in values:
        found = slicer.mrmlScene.GetNodeByID(value)
        if found is not None:
            slicer.mrmlScene.RemoveNode(found)


VERBS = {
    one.__name__: one
    for one in (
        sample, volume_range, segment_new, segment_add, segment_effect, segment_threshold, segment_surface, segment_statistics, markup_new,
        markup_place, markup_stop, markup_points, markup_handles, markup_views, layout, slice_show3d, slice_fov_match,
        slice_intersections, slice_reset, slice_background, node_visible, table_get, table_set, remove_nodes,
    )
}
