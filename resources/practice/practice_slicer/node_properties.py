"""What a node prints, as a tree: the reply of `/mrml/properties`.

MRML nodes print their state as indented `Name: value` lines.  Values are guessed as Slicer's server guesses them:
numbers, vectors in brackets, on/off; lines with `(none)` are left out.
"""

import re

VECTOR_PATTERNS = (r"\(([0-9,\.\- ]+)\)", r"\[([0-9,\.\- ]+)\]", r"^([0-9,\.\- ]+)$")
WORDS = {"(none)": None, "true": True, "on": True, "false": False, "off": False}


def _number(text):
    return float(text) if "." in text else int(text)


def _value(text):
    """The value that a printed text stands for.  Raises ValueError for what only looks like a number."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for pattern in VECTOR_PATTERNS:
        found = re.match(pattern, text)
        if found:
            parts = re.split(",[ ]*| +", found[1].strip())
            if pattern[0] != "^" or len(parts) > 1:
                return [_number(part) for part in parts]
    if re.match(r"^([0-9\.\-]+)$", text):
        return _number(text)
    return text


def _branch(tree, path):
    """The subtree at `path`, made if it is not there."""
    for name in path:
        if not isinstance(tree.get(name), dict):
            tree[name] = {}
        tree = tree[name]
    return tree


def properties(node):
    """The tree of what `node` prints."""
    tree, path, levels, key = {}, [], [0, 2], ""
    for line in str(node).split("\n"):
        depth = len(line) - len(line.lstrip())
        if not line.strip() or depth == 0:
            continue
        depth = max(depth, 2)
        if depth > levels[-1]:
            path.append(key)
            levels.append(depth)
        elif depth < levels[-1]:
            while levels and depth != levels[-1]:
                levels.pop()
                if path:
                    path.pop()
            if not levels:  # indented to a depth that was never opened: Slicer loses its place too
                levels = [0, 2]
                continue
        if ":" not in line:
            key = line.strip()
            continue
        key, text = (part.lstrip() for part in line.split(":", 1))
        branch = _branch(tree, path)
        try:
            value = _value(text)
        except ValueError:
            continue
        if value is not None:
            branch[key] = value
    return tree
