"""The scene as a whole: snapshots, and how two moments differ, in plain words."""
import os

import slicer

from slicer_ai_agent_helper import dialogs, digest, hierarchy, nodes, text, views


def version():
    return str(getattr(slicer.app, "applicationVersion", "") or "")


def is_practice():
    return "practice" in version().lower()


def all_nodes():
    scene = slicer.mrmlScene
    return [scene.GetNthNode(index) for index in range(scene.GetNumberOfNodes())]


class Moment:
    """Everything that is compared: node states by id (in scene order), view state, subject hierarchy."""

    def __init__(self):
        self.places = hierarchy.capture()
        self.states = {}
        self.every_id = set()
        for node in all_nodes():
            self.every_id.add(node.GetID())
            try:
                if not nodes.is_internal(node):
                    self.states[node.GetID()] = nodes.State(node, *self.places.of(node.GetID()))
            except Exception:  # code can hang anything on a node object; the rest of the scene must stay readable
                continue
        self.views = views.capture()
        self.snapshot = self._snapshot()

    def _snapshot(self):
        layout = int(self.views.get(views.LAYOUT, 0))
        slices = views.slices()
        shown = [state for state in self.states.values() if nodes.is_shown(state.node)]
        return {
            "version": version(), "practice": is_practice(), "active_module": self.views[views.MODULE],
            "layout": layout, "layout_name": views.layout_name(layout), "selected_volume": views.selected_volume(),
            "slices": slices, "camera": views.camera(), "nodes": [state.summary(slices) for state in shown],
        }


def reference(summary):
    return {"id": summary["id"], "name": summary["name"], "class": summary["class"]}


def diff(before, after):
    """SceneDiff of two snapshots."""
    old = {node["id"]: node for node in before["nodes"]}
    new = {node["id"]: node for node in after["nodes"]}
    changed = []
    for key, node in new.items():
        if key in old:
            what = what_changed(old[key], node)
            if what:
                changed.append({**reference(node), "what": what})
    return {
        "added": [reference(node) for key, node in new.items() if key not in old],
        "removed": [reference(node) for key, node in old.items() if key not in new],
        "changed": changed, "views": views_changed(before, after),
    }


WORDS = {
    "properties": "properties", "attributes": "attributes", "display": "display", "transform": "parent transform",
    "reference": "references", "hierarchy": "place in the hierarchy",
}


def what_changed(old, new):
    words = []
    was, now = old["digests"], new["digests"]
    if was["name"] != now["name"]:
        words.append("name (was %s)" % old["name"])
    if was["content"] != now["content"]:
        words.append(content_words(old, new))
    if was.get("representations") != now.get("representations") and was["content"] == now["content"]:
        words.append("closed surface")
    changed = [key for key in WORDS if was.get(key) != now.get(key)]
    if was["content"] != now["content"]:
        changed = [key for key in changed if key != "properties"]  # many properties only follow from the content
    words += [WORDS[key] for key in changed]
    if old["visible"] != new["visible"] and new["visible"] is not None:
        words.append("now visible" if new["visible"] else "now hidden")
    return words


def content_words(old, new):
    was, now = old["content"].get("segments"), new["content"].get("segments")
    if was is None or now is None:
        return "content (%s → %s)" % (old["fact"], new["fact"]) if old["fact"] != new["fact"] else "content"
    old_names = {segment["id"]: segment["name"] for segment in was}
    new_names = {segment["id"]: segment["name"] for segment in now}
    gone = [name for key, name in old_names.items() if key not in new_names]
    come = [name for key, name in new_names.items() if key not in old_names]
    parts = (["added " + ", ".join(come)] if come else []) + (["removed " + ", ".join(gone)] if gone else [])
    return "segments" + (" (" + "; ".join(parts) + ")" if parts else "")


def name_in(snapshot, key):
    if not key:
        return "none"
    return next((node["name"] for node in snapshot["nodes"] if node["id"] == key), key)


def views_changed(before, after):
    words = []
    if before["layout"] != after["layout"]:
        names = [side["layout_name"] or str(side["layout"]) for side in (before, after)]
        words.append("layout: %s → %s" % tuple(names))
    for name, new in after["slices"].items():
        old = before["slices"].get(name)
        if old is None:
            continue
        if old["orientation"] != new["orientation"]:
            words.append("%s slice orientation: %s → %s" % (name, old["orientation"], new["orientation"]))
        if abs(old["offset"] - new["offset"]) > 1e-3:
            words.append("%s slice offset: %g → %g mm" % (name, round(old["offset"], 3), round(new["offset"], 3)))
        for layer in ("background", "foreground", "label"):
            if (old[layer] or "") != (new[layer] or ""):
                pair = (name_in(before, old[layer]), name_in(after, new[layer]))
                words.append("%s slice %s: %s → %s" % (name, layer, *pair))
        if old["visible_in_3d"] != new["visible_in_3d"]:
            words.append("%s slice %s in 3D" % (name, "shown" if new["visible_in_3d"] else "no longer shown"))
    if not views.same(tuple(before["camera"]), tuple(after["camera"])):
        words.append("3D camera")
    if (before["selected_volume"] or "") != (after["selected_volume"] or ""):
        pair = (name_in(before, before["selected_volume"]), name_in(after, after["selected_volume"]))
        words.append("selected volume: %s → %s" % pair)
    if before["active_module"] != after["active_module"]:
        words.append("module: %s → %s" % (before["active_module"] or "none", after["active_module"] or "none"))
    return words


def status():
    shown = [node for node in all_nodes() if nodes.is_shown(node)]
    return {
        "version": version(), "practice": is_practice(), "nodes": len(shown),
        "all_nodes": slicer.mrmlScene.GetNumberOfNodes(), "pid": os.getpid(), "main_window": has_main_window(),
        "modal_dialog": modal_dialog(), "scene_file": str(slicer.mrmlScene.GetURL() or ""),
    }


def has_main_window():
    window = slicer.util.mainWindow()
    return window is not None and bool(getattr(window, "visible", True))


def modal_dialog():
    """The title of the dialog that keeps the person, and so perhaps Slicer, waiting; None when there is none."""
    dialog = dialogs.active_modal()
    return None if dialog is None else dialogs.title_of(dialog)


def node_properties(ids):
    """Per id: the node's snapshot entry, attributes, references, and what it prints of itself (cut)."""
    places, slices, out = hierarchy.capture(), views.slices(), {}
    for key in ids:
        node = slicer.mrmlScene.GetNodeByID(str(key))
        if node is None:
            out[str(key)] = {"error": "no node with this id"}
            continue
        entry = nodes.State(node, places.place_of(node.GetID())).summary(slices)
        entry.update(
            description=node.GetDescription() or "", hidden=bool(node.GetHideFromEditors()),
            attributes=digest.attributes(node), references=digest.all_references(node),
            hierarchy=entry["digests"]["hierarchy"], text=text.clip(digest.printed(node), 6000),
        )
        del entry["digests"]
        if hasattr(node, "GetNumberOfControlPoints"):
            entry["control_points"] = control_points(node)
        out[str(key)] = entry
    return out


def control_points(node, limit=100):
    out = []
    for index in range(min(node.GetNumberOfControlPoints(), limit)):
        position = [round(number, 6) for number in node.GetNthControlPointPosition(index)]
        out.append({"label": node.GetNthControlPointLabel(index), "position": position})
    return out


def list_nodes(class_name=None, name=None):
    """References of the nodes a person works with; with a class or a name, of all nodes that match."""
    out = []
    for node in all_nodes():
        if class_name and not node.IsA(str(class_name)):
            continue
        if name and (node.GetName() or "") != str(name):
            continue
        if class_name or name or nodes.is_shown(node):
            out.append(text.node_reference(node))
    return out
