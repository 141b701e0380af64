"""The third ring: a copy of the scene before each run, and putting it back.

Slicer's own undo is off for every node class, so it restores nothing. Here each node that is not the application's own
gets a record: a deep copy of its content (shared with the checkpoint before when nothing differs, so that only what
changes costs memory), its attributes and references, and the node object itself. A restore keeps node objects that
still live and puts removed ones back under their ids; then it is proved by comparing fingerprints, not assumed.

Bulk data above `NODE_LIMIT` a node or `TOTAL_LIMIT` a checkpoint is not copied: the record shares it, which brings back
data that was replaced, but not data that was changed in place. The report says so when it happens.
"""
import slicer

from slicer_ai_agent_helper import digest as d
from slicer_ai_agent_helper import hierarchy, nodes, scene, views

NODE_LIMIT = 64 << 20
TOTAL_LIMIT = 512 << 20
KEPT_LIMIT = 1 << 30
KEPT = 20


class Record:
    """One node: what it was, and a copy of it."""

    def __init__(self, state, previous, budget):
        node = state.node
        self.node, self.id, self.name, self.kind = node, state.id, state.name, state.kind
        self.digests = dict(state.digests)
        self.attributes = d.attributes(node)
        self.references = d.all_references(node)
        self.base = {name: getattr(node, "Get" + name)() for name in BASE}
        self.display = node.IsA("vtkMRMLDisplayNode") or node.IsA("vtkMRMLStorageNode")
        self.own = own_digest(node) if self.display else ""
        self.settings = nodes.settings(node) if self.display else {}
        if previous is not None and previous.same_as(self):
            self.copy, self.deep, self.bytes = previous.copy, previous.deep, previous.bytes
            self.colours = previous.colours
            return
        self.bytes = nodes.bulk_bytes(node)
        self.deep = self.bytes <= min(NODE_LIMIT, budget)
        self.copy = self._copy()

    def same_as(self, other):
        return self.node is other.node and self.digests == other.digests and self.own == other.own and self.deep

    def _copy(self):
        node = self.node
        copy = node.CreateNodeInstance()
        self.colours = colour_table(node)
        if self.deep:
            copy.Copy(node)
            return copy
        self.shared = shared_data(node)
        if hasattr(node, "HasCopyContent") and node.HasCopyContent():
            copy.CopyContent(node, False)
            return copy
        return None

    def put_back(self):
        """Content, then properties, attributes and references, into the node that lives in the scene."""
        node = self.node
        was = node.StartModify()
        try:
            if self.copy is not None:
                if self.deep:
                    node.Copy(self.copy)
                else:
                    node.CopyContent(self.copy, False)
            nodes.put_back_settings(node, self.settings)
            if self.colours is not None:
                put_back_colours(node, self.colours)
            if not self.deep and self.shared is not None:
                data = self.shared.NewInstance()
                data.ShallowCopy(self.shared)
                write = node.SetAndObserveImageData if node.IsA("vtkMRMLVolumeNode") else node.SetAndObserveMesh
                write(data)
            for name, value in self.base.items():
                if getattr(node, "Get" + name)() != value:
                    getattr(node, "Set" + name)(value)
            if "numbering" in self.digests:
                node.SetLastUsedControlPointNumber(int(self.digests["numbering"]))
            put_back_attributes(node, self.attributes)
            put_back_references(node, self.references)
        finally:
            node.EndModify(was)


def shared_data(node):
    """A data object that shares the arrays of a volume or model, so that the arrays survive when code makes new ones."""
    data = node.GetImageData() if node.IsA("vtkMRMLVolumeNode") else None
    data = node.GetMesh() if node.IsA("vtkMRMLModelNode") else data
    if data is None:
        return None
    copy = data.NewInstance()
    copy.ShallowCopy(data)
    return copy


def colour_table(node):
    """Colours and names of a colour table, whose own copy function shares the table with the original."""
    table = node.GetLookupTable() if node.IsA("vtkMRMLColorTableNode") else None
    if table is None:
        return None
    count = table.GetNumberOfTableValues()
    return [(node.GetColorName(index), table.GetTableValue(index)) for index in range(count)]


def put_back_colours(node, colours):
    table = node.GetLookupTable()
    if table.GetNumberOfTableValues() != len(colours):
        node.SetNumberOfColors(len(colours))
    for index, (name, colour) in enumerate(colours):
        if (node.GetColorName(index), table.GetTableValue(index)) != (name, colour):  # setting one defines it
            node.SetColor(index, name or "", *colour)


BASE = ("Name", "Description", "HideFromEditors", "Selectable", "Selected", "SaveWithScene")


def own_digest(node):
    """Of a display or storage node: everything that it says of itself."""
    return d.digest(d.printed(node), node.GetName(), d.attributes(node), d.all_references(node))


def put_back_attributes(node, wanted):
    for name in set(d.attributes(node)) - set(wanted):
        node.RemoveAttribute(name)
    for name, value in wanted.items():
        if node.GetAttribute(name) != value:
            node.SetAttribute(name, value)


def put_back_references(node, wanted):
    now = d.all_references(node)
    for role in set(now) | set(wanted):
        ids = wanted.get(role, [])
        if now.get(role, []) == ids:
            continue
        for index in range(node.GetNumberOfNodeReferences(role) - 1, len(ids) - 1, -1):
            node.RemoveNthNodeReferenceID(role, index)
        for index, key in enumerate(ids):
            node.SetNthNodeReferenceID(role, index, key)


class Checkpoint:
    """The scene before a run, and after it which parts the run changed."""

    def __init__(self, run_id, moment, previous):
        self.run_id = run_id
        self.places, self.views = moment.places, moment.views
        self.every_id = set(moment.every_id)
        self.records, budget = {}, TOTAL_LIMIT
        older = previous.records if previous is not None else {}
        for key, state in moment.states.items():
            record = self.records[key] = Record(state, older.get(key), budget)
            budget -= record.bytes if record.deep else 0
        self.touched = self.added = self.view_keys = self.new_folders = None
        self.after = {}

    def close(self, moment):
        """Notes what differs after the run; an undo touches only that."""
        own = {key: own_of(moment.states[key]) for key in moment.states}
        self.touched = {
            key for key, record in self.records.items()
            if key not in moment.states or moment.states[key].digests != record.digests or own[key] != record.own
        }
        self.added = [key for key in moment.states if key not in self.records]
        self.view_keys = views.changed_keys(self.views, moment.views)
        self.new_folders = folder_numbers(moment.places) - folder_numbers(self.places)
        self.moved = moment.places.folders() != self.places.folders()
        self.after = {key: (moment.states[key].digests, own[key]) for key in moment.states}

    def restore(self):
        """Puts back what the run changed and returns a RestoreReport."""
        problems, start = [], views.capture()
        remove_nodes([key for key in self.added if key not in self.every_id])
        put_back_removed([self.records[key] for key in self.touched], problems)
        chosen = [self.records[key] for key in self.touched]
        hierarchy.remove_folders(self.places, self.new_folders)
        hierarchy.restore(self.places, self.touched)
        for _ in range(2):  # a second pass: putting back a node can move what another one derived from it
            wrong = [record for record in chosen if not self.proved(record)]
            for record in sorted(wrong, key=lambda record: record.display):
                try_put_back(record, problems)
            if not wrong:
                break
        # Nodes that come and go move selections and views by themselves; what the run did not move stays where it was.
        drifted = [key for key in views.changed_keys(start, views.capture()) if key not in self.view_keys]
        views.restore(start, drifted)
        views.restore(self.views, self.view_keys)
        return self.report(chosen, problems)

    def proved(self, record):
        node = slicer.mrmlScene.GetNodeByID(record.id)
        if node is None:
            return False
        if record.display:
            return own_digest(node) == record.own
        now = nodes.State(node, self.places.place_of(record.id)).digests
        return all(now.get(key) == value for key, value in record.digests.items() if key not in ("hierarchy", "marks"))

    def report(self, chosen, problems):
        moment = scene.Moment()
        missing = list(problems)
        for record in chosen:
            state = moment.states.get(record.id)
            if state is None:
                missing.append("%s: could not be put back" % record.name)
                continue
            wrong = [key for key, value in record.digests.items() if state.digests.get(key) != value]
            if own_of(state) != record.own:
                wrong.append("settings")
            if wrong:
                why = "" if record.deep else " (too large to be copied before the run)"
                missing.append("%s: %s could not be restored%s" % (record.name, ", ".join(wrong), why))
        left = [key for key in self.added if key in moment.states]
        missing += ["%s: could not be removed" % moment.states[key].name for key in left]
        for key in views.changed_keys(self.views, moment.views):
            if key in self.view_keys:
                missing.append("view: %s of %s could not be restored" % (key[1], key[0]))
        if self.moved and moment.places.folders() != self.places.folders():
            missing.append("folders of the subject hierarchy could not be restored")
        return {"complete": not missing, "missing": missing}

    def bytes(self):
        return {id(record.copy): record.bytes for record in self.records.values() if record.deep}


def own_of(state):
    node = state.node
    return own_digest(node) if node.IsA("vtkMRMLDisplayNode") or node.IsA("vtkMRMLStorageNode") else ""


def folder_numbers(places):
    return {item.number for item in places.items.values() if item.is_folder()}


def remove_nodes(ids):
    """Removes nodes that a run added; the application's own and singletons stay."""
    for key in ids:
        node = slicer.mrmlScene.GetNodeByID(key)
        if node is not None and not node.GetSingletonTag():
            slicer.mrmlScene.RemoveNode(node)


def put_back_removed(records, problems):
    gone = [record for record in records if slicer.mrmlScene.GetNodeByID(record.id) is None]
    for record in sorted(gone, key=lambda record: not record.display):
        slicer.mrmlScene.AddNode(record.node)
        if record.node.GetID() != record.id or slicer.mrmlScene.GetNodeByID(record.id) is not record.node:
            problems.append("%s: came back under another id (%s)" % (record.name, record.node.GetID()))


def try_put_back(record, problems):
    node = slicer.mrmlScene.GetNodeByID(record.id)
    if node is None:
        return
    try:
        if node is not record.node:  # another object took the id: it gets the content
            record.node = node
        record.put_back()
    except Exception as error:
        problems.append("%s: %s" % (record.name, error))


def restored(checkpoint):
    """The report of a restore, also when it broke off: what the run itself reported must not be lost with it."""
    try:
        return checkpoint.restore()
    except Exception as error:
        what = "%s: %s" % (type(error).__name__, error)
        return {"complete": False, "missing": ["the restore broke off (%s)" % what]}


class Store:
    """The checkpoints that can be undone, oldest first, within a number and a memory limit."""

    def __init__(self):
        self.items = []

    def last(self):
        return self.items[-1] if self.items else None

    def add(self, checkpoint):
        self.items.append(checkpoint)
        while len(self.items) > KEPT or (len(self.items) > 1 and self.bytes() > KEPT_LIMIT):
            del self.items[0]

    def bytes(self):
        shared = {}
        for item in self.items:
            shared.update(item.bytes())
        return sum(shared.values())

    def discard(self, checkpoint):
        self.items = [item for item in self.items if item is not checkpoint]

    def undo(self, run_id):
        """Undoes this run, and before it the runs that came after it, newest first."""
        ids = [item.run_id for item in self.items]
        if run_id not in ids:
            return {"complete": False, "missing": ["this run can no longer be undone"], "also_undone": []}
        first, missing, also = ids.index(run_id), [], []
        while len(self.items) > first:
            item = self.items.pop()
            missing += restored(item)["missing"]
            if item.run_id != run_id:
                also.append(item.run_id)
        return {"complete": not missing, "missing": missing, "also_undone": also}
