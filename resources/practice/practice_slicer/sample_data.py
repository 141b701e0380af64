"""The SampleData module without a network: volumes made on the spot, under the names of Slicer's sample data.

Everything is synthetic, the same each time, and has nothing to do with any person.
"""

import sys
import types

import numpy as np
import slicer
import vtk

from . import phantom_head, phantom_pelvis, phantom_torso
from .phantom_tools import Grid

HEAD = Grid((96, 124, 80), (1.9, 1.9, 2.5), (0, 0, -2))
CHEST = Grid((128, 128, 80), (2.5, 2.5, 3.5))
HEART = Grid((72, 72, 36), (2.6, 2.6, 4.0), (10, -8, -24))  # of the sequences
FRAMES = 10
# In Slicer, but not imitated: diffusion tensors and weighted volumes.
NOT_OFFERED = ("DTIBrain", "DWIVolume", "DiffusionMRIDWIVolume", "WhiteMatterExplorationBaselineVolume")
# Methods of the logic whose names are not "download" and the name of the sample.
OTHER_METHODS = {"downloadDentalSurgery": "CBCTDentalSurgery", "downloadMRUSPostate": "MRUSProstate"}


class _Scan:
    """Voxels with their place in RAS and the window and level in which they are looked at."""

    def __init__(self, voxels, ijk_to_ras, window, level):
        self.voxels, self.ijk_to_ras, self.window, self.level = voxels, ijk_to_ras, window, level


def _axial(grid, voxels, window, level):
    """An axial scan: columns run to the left, rows to the back, slices to the head."""
    first = [axis[0] for axis in grid.axes]
    matrix = np.diag([-grid.spacing[0], -grid.spacing[1], grid.spacing[2], 1.0])
    matrix[:3, 3] = -first[0], -first[1], first[2]
    return _Scan(voxels, matrix, window, level)


def _sagittal(grid, voxels, window, level):
    """A sagittal scan of the same: columns run to the back, rows to the feet, slices from left to right."""
    turned = np.ascontiguousarray(voxels[::-1, :, ::-1].transpose(2, 0, 1))
    matrix = np.zeros((4, 4))
    matrix[1, 0], matrix[2, 1], matrix[0, 2], matrix[3, 3] = -grid.spacing[1], -grid.spacing[2], grid.spacing[0], 1
    matrix[:3, 3] = -grid.axes[0][-1], -grid.axes[1][0], grid.axes[2][-1]
    return _Scan(turned, matrix, window, level)


def _mr_head(tumour=None, seed=5, axial=True):
    voxels = phantom_head.mr(HEAD, phantom_head.tissues(HEAD, seed, tumour), seed=seed + 16)
    return (_axial if axial else _sagittal)(HEAD, voxels, 260, 120)


def _torso(grid, window, level, **options):
    return _axial(grid, phantom_torso.torso(grid, **options), window, level)


def _ct_and_mr_head():
    tissue = phantom_head.tissues(HEAD)
    yield _axial(HEAD, phantom_head.ct(HEAD, tissue), 120, 40)
    yield _axial(HEAD, phantom_head.mr(HEAD, tissue), 260, 120)
    yield _axial(HEAD, phantom_head.mr(HEAD, tissue, phantom_head.T2, seed=25), 300, 140)


def _prostate():
    grid = Grid((96, 96, 48), (1.3, 1.3, 2.5))
    yield _axial(grid, phantom_pelvis.mr(grid), 280, 130)
    grid = Grid((112, 100, 64), (1.1, 1.1, 1.4), (0, -6, 0))
    yield _axial(grid, phantom_pelvis.ultrasound(grid), 160, 70)


def _anisotropy():
    tissue = phantom_head.tissues(HEAD)
    return _axial(HEAD, phantom_head.mr(HEAD, tissue, phantom_head.FA_VALUE, seed=27), 700, 350)


def _heart(**options):
    return _torso(Grid((120, 120, 88), (1.5, 1.5, 1.6), (10, -8, -24)), 700, 180, blood=380, table=False, **options)


def _cone_beam(seed, tumour=None):
    """A head by cone beam CT: noisier than CT, little difference between soft tissues."""
    tissue = phantom_head.tissues(HEAD, seed, tumour)
    voxels = phantom_head.ct(HEAD, tissue, seed) + np.random.default_rng(seed).normal(0, 35, HEAD.shape)
    return _axial(HEAD, np.clip(voxels, -1024, 3071).astype(np.int16), 2000, 400)


def _dental():
    yield _cone_beam(33)
    yield _cone_beam(34)


def _cone_beam_and_mr():
    yield _cone_beam(35)
    yield _mr_head(seed=7)


def _beating_heart():
    """One heart beat."""
    for frame in range(FRAMES):
        beat = 1 - 0.11 * (1 - np.cos(2 * np.pi * frame / FRAMES))
        yield _torso(HEART, 700, 180, blood=350, table=False, beat=beat)


def _perfused_heart():
    """Contrast that comes and goes."""
    for frame in range(FRAMES):
        blood = 50 + 330 * np.exp(-(((frame - 4) / 2.2) ** 2))
        yield _torso(HEART, 600, 150, blood=float(blood), table=False)


# Sample name -> names of the nodes, and a function that gives one scan or yields several.
SAMPLES = {
    "MRHead": (["MRHead"], lambda: _mr_head(axial=False)),
    "CTChest": (["CTChest"], lambda: _torso(CHEST, 1500, -250)),
    "CTACardio": (["CTACardio"], _heart),
    "CTAAbdomenPanoramix": (
        ["CTAAbdomenPanoramix"],
        lambda: _torso(Grid((128, 110, 96), (2.5, 2.5, 3.2), (0, 4, -262)), 500, 120, blood=320),
    ),
    "CTLiver": (
        ["CTLiver"],
        lambda: _torso(Grid((128, 110, 64), (2.5, 2.5, 3.0), (0, 4, -140)), 350, 50, blood=170),
    ),
    "MRBrainTumor1": (["MRBrainTumor1"], lambda: _mr_head(((26, -16, 44), 13), seed=8)),
    "MRBrainTumor2": (["MRBrainTumor2"], lambda: _mr_head(((-30, 30, 36), 16), seed=9)),
    "CTMRBrain": (["CTBrain", "MRBrainT1", "MRBrainT2"], _ct_and_mr_head),
    "MRUSProstate": (["MRProstate", "USProstate"], _prostate),
    "FA": (["FA"], _anisotropy),
    "BaselineVolume": (["BaselineVolume"], lambda: _mr_head(seed=10)),
    "CBCTDentalSurgery": (["PreDentalSurgery", "PostDentalSurgery"], _dental),
    "CBCTMRHead": (["DZ-CBCT", "DZ-MR"], _cone_beam_and_mr),
}
# Sample name -> a function that yields the scans of a sequence.
SEQUENCES = {"CTCardioSeq": _beating_heart, "CTPCardioSeq": _perfused_heart}


def _scans(name):
    """The scans of a sample with the names of their nodes."""
    names, make = SAMPLES[name]
    made = make()
    return list(zip(names, [made] if isinstance(made, _Scan) else made))


def _make_volume(name, scan):
    """A volume node with a display node."""
    matrix = vtk.vtkMatrix4x4()
    matrix.DeepCopy(scan.ijk_to_ras.flatten())
    node = slicer.mrmlScene.AddNewNodeByClass("vtkMRMLScalarVolumeNode", name)
    node.SetIJKToRASMatrix(matrix)
    slicer.util.updateVolumeFromArray(node, scan.voxels)  # before the display node, which looks at the values
    node.CreateDefaultDisplayNodes()
    display = node.GetDisplayNode()
    display.AutoWindowLevelOff()
    display.SetWindowLevel(scan.window, scan.level)
    display.SetAndObserveColorNodeID("vtkMRMLColorTableNodeGrey")
    return node


def _show(node):
    """Show a volume in the slice views, as loading a file does."""
    slicer.util.setSliceViewerLayers(background=node, fit=True)
    slicer.app.applicationLogic().GetSelectionNode().SetActiveVolumeID(node.GetID())
    return node


def _add_volume(name, scan):
    return _show(_make_volume(slicer.mrmlScene.GetUniqueNameByString(name), scan))


def _add_sequence(name):
    """A sequence of volumes with its browser; the first of them is shown."""
    scene = slicer.mrmlScene
    sequence = scene.AddNewNodeByClass("vtkMRMLSequenceNode", scene.GetUniqueNameByString(name))
    sequence.SetIndexName("time")
    sequence.SetIndexUnit("s")
    for number, scan in enumerate(SEQUENCES[name]()):
        frame = _make_volume(name, scan)
        sequence.SetDataNodeAtValue(frame, f"{number / FRAMES:g}")
        scene.RemoveNode(frame.GetDisplayNode())
        scene.RemoveNode(frame)
    browser = scene.AddNewNodeByClass("vtkMRMLSequenceBrowserNode", sequence.GetName() + " browser")
    browser.SetAndObserveMasterSequenceNodeID(sequence.GetID())
    slicer.modules.sequences.logic().UpdateProxyNodesFromSequences(browser)
    proxy = browser.GetProxyNode(sequence)
    proxy.CreateDefaultDisplayNodes()
    proxy.GetDisplayNode().AutoWindowLevelOff()
    proxy.GetDisplayNode().SetWindowLevel(scan.window, scan.level)
    _show(proxy)
    return sequence


def _download(name):
    """The nodes of a sample; an empty list for an unknown name, as in Slicer."""
    if name in NOT_OFFERED:
        raise RuntimeError(f"The practice Slicer has no sample data '{name}': diffusion images are not imitated.")
    if name in SEQUENCES:
        return [_add_sequence(name)]
    if name in SAMPLES:
        return [_add_volume(node_name, scan) for node_name, scan in _scans(name)]
    known = ", ".join((*SAMPLES, *SEQUENCES))
    print(f"The practice Slicer has no sample data '{name}'; it has: {known}.", file=sys.stderr)
    return []


def _download_first(name):
    """The first node of a sample; IndexError for an unknown name, as in Slicer."""
    nodes = _download(name)
    if not nodes:
        known = ", ".join((*SAMPLES, *SEQUENCES))
        raise IndexError(f"The practice Slicer has no sample data '{name}'; it has: {known}.")
    return nodes[0]


def _refuse(*args, **kwargs):
    raise RuntimeError("The practice Slicer has no network: it cannot download files. Use downloadSample(name).")


class SampleDataLogic:
    """What scripts use of Slicer's class of this name; `downloadMRHead()` and the like work for all SAMPLES."""

    def __init__(self, logMessage=None):
        self.logMessage = logMessage
        self.downloadPercent = 0

    @staticmethod
    def registerCustomSampleDataSource(*args, **kwargs):
        """Accepted and ignored: such data would have to be downloaded."""

    def downloadSamples(self, sampleDataName):
        """Make the volumes of a sample; returns the list of their nodes."""
        return _download(sampleDataName)

    def downloadSample(self, sampleDataName):
        """Make the volumes of a sample; returns the first node."""
        return _download_first(sampleDataName)

    downloadFromURL = downloadFileIntoCache = downloadFile = _refuse

    def __getattr__(self, name):
        sample = OTHER_METHODS.get(name, name.removeprefix("download"))
        if sample == name or sample not in (*SAMPLES, *SEQUENCES, *NOT_OFFERED):
            raise AttributeError(f"'SampleDataLogic' object has no attribute '{name}'")

        def download():
            nodes = _download(sample)
            return nodes[0] if len(nodes) == 1 else nodes

        return download


def _no_data(*args, **kwargs):
    raise RuntimeError("Sample data is switched off: the practice Slicer was started with --no-data.")


def install(with_data=True):
    """Make `import SampleData` work; without `with_data` every download fails as without a network."""
    module = types.ModuleType("SampleData", __doc__)
    module.SampleDataLogic = SampleDataLogic
    module.downloadSample = _download_first
    module.downloadSamples = _download
    module.downloadFromURL = _refuse
    if not with_data:
        globals()["_download"] = module.downloadSamples = module.downloadSample = _no_data
    # Where Slicer keeps the list of samples, by category.
    sources = [types.SimpleNamespace(sampleName=name) for name in (*SAMPLES, *SEQUENCES)]
    slicer.modules.sampleDataSources = {"General": sources}
    sys.modules["SampleData"] = module
