"""The subject hierarchy: where each node lies, and the folders that have no node.

Item numbers do not survive a removal, so places are kept by what lies where: a node by its id, a folder by its own
number while it lives and by its name and level when it has to be made again.
"""
import slicer
import vtk

FOLDER_LEVELS = ("Folder", "Patient", "Study")


def hierarchy_node():
    return slicer.mrmlScene.GetSubjectHierarchyNode()


class Item:
    def __init__(self, tree, number):
        self.number = number
        node = tree.GetItemDataNode(number)
        self.node_id = node.GetID() if node is not None else None
        self.parent = tree.GetItemParent(number)
        self.name = tree.GetItemName(number)
        self.level = tree.GetItemLevel(number)
        self.expanded = bool(tree.GetItemExpanded(number))
        self.attributes = {name: tree.GetItemAttribute(number, name) for name in tree.GetItemAttributeNames(number)}

    def is_folder(self):
        return self.node_id is None and self.level in FOLDER_LEVELS


class Places:
    def __init__(self, items, root):
        self.items, self.root = items, root
        self.by_node = {item.node_id: item for item in items.values() if item.node_id}

    def path(self, number):
        names = []
        while number in self.items and len(names) < 50:
            names.append(self.items[number].name)
            number = self.items[number].parent
        return " / ".join(reversed(names))

    def place_of(self, node_id):
        """The names of the folders above a node; empty at the top or when it is not listed."""
        item = self.by_node.get(node_id)
        return self.path(item.parent) if item is not None else ""

    def of(self, node_id):
        """Place of a node, and the attributes of its item."""
        item = self.by_node.get(node_id)
        return self.place_of(node_id), item.attributes if item is not None else {}

    def folders(self):
        found = [item for item in self.items.values() if item.is_folder()]
        return sorted((self.path(item.number), sorted(item.attributes.items())) for item in found)


def capture():
    tree = hierarchy_node()
    if tree is None:
        return Places({}, 0)
    numbers = vtk.vtkIdList()
    root = tree.GetSceneItemID()
    tree.GetItemChildren(root, numbers, True)
    every = [numbers.GetId(index) for index in range(numbers.GetNumberOfIds())]
    return Places({number: Item(tree, number) for number in every}, root)


def restore(target, node_ids):
    """Puts the places of the given nodes back, and all folders."""
    tree, now = hierarchy_node(), capture()
    if tree is None or not target.items:
        return
    numbers = {target.root: tree.GetSceneItemID()}
    for item in target.items.values():  # parents come before children in a recursive listing
        if item.is_folder():
            alive = now.items.get(item.number)
            if alive is not None and alive.is_folder():
                numbers[item.number] = item.number
                if alive.name != item.name:
                    tree.SetItemName(item.number, item.name)
            else:
                numbers[item.number] = make_folder(tree, item, numbers)
    for item in target.items.values():
        number = item.number
        if item.node_id:
            node = slicer.mrmlScene.GetNodeByID(item.node_id) if item.node_id in node_ids else None
            number = tree.GetItemByDataNode(node) if node is not None else 0
            numbers[item.number] = number
    for item in target.items.values():
        number, parent = numbers.get(item.number, 0), numbers.get(item.parent, 0)
        if not number or not parent:
            continue
        if tree.GetItemParent(number) != parent:
            tree.SetItemParent(number, parent)
        for name in set(tree.GetItemAttributeNames(number)) - set(item.attributes):
            tree.RemoveItemAttribute(number, name)
        for name, value in item.attributes.items():
            if tree.GetItemAttribute(number, name) != value:
                tree.SetItemAttribute(number, name, value)


def make_folder(tree, item, numbers):
    parent = numbers.get(item.parent, tree.GetSceneItemID())
    number = tree.CreateFolderItem(parent, item.name)
    if item.level != "Folder":
        tree.SetItemLevel(number, item.level)
    tree.SetItemExpanded(number, item.expanded)
    return number


def remove_folders(target, candidates):
    """Removes those of the candidate folders that the target does not have. Their children move up one level."""
    tree = hierarchy_node()
    for number, item in capture().items.items():
        wanted = target.items.get(number)
        known = wanted is not None and wanted.is_folder()
        if number in candidates and item.is_folder() and not known:
            for child in [one for one in capture().items.values() if one.parent == number]:
                tree.SetItemParent(child.number, item.parent)
            tree.RemoveItem(number, False, False)
