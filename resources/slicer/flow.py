"""The namespace of a guided workflow's template: its verbs, its values, and what it keeps.

A template runs apart from the Python console, so that neither sees the names of the other. Its values came as data beside
the code. A verb that cannot do its work ends the template with a sentence for the person.
"""
import slicer

from slicer_ai_agent_helper import flow_scene, flow_ui


def grants(request):
    """What a run may reach. A template that may use the network loads sample data, which goes to Slicer's own cache."""
    wanted = request.get("grants")
    if not request.get("flow") or not wanted or wanted.get("network") is not True:
        return wanted
    manager = slicer.mrmlScene.GetCacheManager()
    cache = manager.GetRemoteCacheDirectory() if manager is not None else None
    return {**wanted, "write": [*wanted.get("write", ()), cache]} if cache else wanted


def namespace(console, request):
    """The names of a template, and the dictionary of what it keeps."""
    kept = {}

    def keep(**named):
        """Keeps values for later steps: nodes as their ids."""
        for name, value in named.items():
            kept[name] = value.GetID() if hasattr(value, "GetID") else value

    names = {"__name__": "slicer_ai_agent_step", "values": dict(request.get("values") or {}), "keep": keep}
    for name in ("__builtins__", "slicer", "vtk", "qt", "ctk"):
        if name in console:
            names[name] = console[name]
    names.update(flow_ui.VERBS)
    names.update(flow_scene.VERBS)
    return names, kept
