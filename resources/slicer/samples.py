"""Sample data by its name, as the SampleData module offers it: loads one, or says which there are."""
import uuid

import slicer

from slicer_ai_agent_helper import checkpoint, plain, run, scene


def known():
    """The names of all samples, in the order of the module."""
    sources = getattr(slicer.modules, "sampleDataSources", None)
    if not isinstance(sources, dict):
        return []
    names = [source.sampleName for category in sources.values() for source in category if source.sampleName]
    return list(dict.fromkeys(str(name) for name in names))


def load(name):
    """Loads the sample and gives the nodes that came; the download can be taken back like any other run."""
    import SampleData

    names = known()
    chosen = next((one for one in names if one.lower() == name.strip().lower()), None)
    if chosen is None and names:
        return {"loaded": None, "known": names}
    before = scene.Moment()
    point = checkpoint.Checkpoint(plain.PREFIX + uuid.uuid4().hex, before, run.store.last())
    try:
        SampleData.SampleDataLogic().downloadSamples(chosen or name.strip())
    finally:
        after = scene.Moment()
        point.close(after)
        plain.keep(point)
    return {"loaded": scene.diff(before.snapshot, after.snapshot)["added"], "known": names}
