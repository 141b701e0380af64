"""The record of names that only the full Slicer has.

There is no Qt here, so a widget or property that nobody defined is made up when code touches it.  Each such name is
noted, with how often: this is the honest measure of how far a result can be trusted.  In strict mode a made-up name
raises AttributeError instead.
"""

strict = False
_counts = {}


class NotInPractice(AttributeError):
    """A name that only the full Slicer has was touched in strict mode."""


def note(what):
    """Record that the made-up name `what` was touched; in strict mode raise NotInPractice."""
    _counts[what] = _counts.get(what, 0) + 1
    if strict:
        raise NotInPractice(f"{what} is not available in the practice Slicer: only the full 3D Slicer has it")


def names():
    """The made-up names touched since the start or the last clear(), in the order of first touch."""
    return list(_counts)


def counts():
    """The same names with how often each was touched."""
    return dict(_counts)


def clear():
    """Forget what was touched so far."""
    _counts.clear()
