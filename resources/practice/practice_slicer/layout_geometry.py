"""Where the views of a layout are: the boxes that Slicer's XML layout descriptions mean.

A description is a tree of `layout` (vertical, horizontal, grid, tab), `item` and `view` elements.  Items of a vertical
or horizontal layout share the space evenly, or by their `splitSize` where the layout is a splitter.
"""


def _children(element, name):
    nested = (element.GetNestedElement(i) for i in range(element.GetNumberOfNestedElements()))
    return [child for child in nested if child.GetName() == name]


def _shares(items, length):
    """The starts and lengths in pixels of the items along one direction."""
    weights = [float(item.GetAttribute("splitSize") or 0) for item in items]
    if not all(weights):
        weights = [1.0] * len(items)
    edges, total = [0], 0.0
    for weight in weights:
        total += weight
        edges.append(round(length * total / sum(weights)))
    return [(start, end - start) for start, end in zip(edges, edges[1:])]


def _grid(items, box):
    """The boxes of the items of a grid layout."""
    x, y, width, height = box
    cells = [(int(item.GetAttribute("row") or 0), int(item.GetAttribute("column") or 0)) for item in items]
    rows, columns = max(row for row, _ in cells) + 1, max(column for _, column in cells) + 1
    for item, (row, column) in zip(items, cells):
        wide = int(item.GetAttribute("multiple") == "true") or int(item.GetAttribute("colspan") or 1)
        left, right = width * column // columns, width * (column + wide) // columns
        top, bottom = height * row // rows, height * (row + 1) // rows
        yield item, (x + left, y + top, right - left, bottom - top)


def _item_boxes(layout, box):
    """The items of a layout that can be seen, with their boxes."""
    items = _children(layout, "item")
    kind = layout.GetAttribute("type") or "vertical"
    x, y, width, height = box
    if not items:
        return
    if kind == "grid":
        yield from _grid(items, box)
    elif kind == "tab":
        yield items[0], box
    elif kind == "horizontal":
        for item, (start, length) in zip(items, _shares(items, width)):
            yield item, (x + start, y, length, height)
    else:
        for item, (start, length) in zip(items, _shares(items, height)):
            yield item, (x, y + start, width, length)


def places(layout, box):
    """The boxes (x, y, width, height) by (class of the view node, singleton tag) of a layout element within `box`."""
    found = {}
    if layout is None:
        return found
    for item, item_box in _item_boxes(layout, box):
        for view in _children(item, "view"):
            found[(view.GetAttribute("class"), view.GetAttribute("singletontag"))] = item_box
        for nested in _children(item, "layout"):
            found.update(places(nested, item_box))
    return found
