"""A practice 3D Slicer without a window: Slicer's own scene, logics and views, and its Web Server API.

Started with `python -m practice_slicer --port N`.  See README.md beside this folder for what is real and what is not.
"""

from . import made_up


def touched():
    """The made-up names that code touched so far and only the full Slicer really has."""
    return made_up.names()
