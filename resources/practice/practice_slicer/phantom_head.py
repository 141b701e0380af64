"""A phantom of the head: skin, skull, brain with folds and ventricles, eyes, sinuses, and tumours on demand.

One map of tissues gives MR pictures (arbitrary units) and CT (Hounsfield units) of the same head.
"""

import numpy as np

from .phantom_tools import as_voxels, blur, curve, ellipsoid, noise, smooth_field, tube

(AIR, SKIN, FAT, MUSCLE, SKULL, MARROW, FLUID, GREY, WHITE, EYE, LENS, CYST, RIM, EDEMA, NUCLEUS) = range(15)

# What each tissue looks like, in the order above.
T1 = (2, 150, 230, 95, 14, 120, 28, 92, 138, 34, 110, 36, 250, 70, 104)
T2 = (2, 90, 140, 60, 10, 70, 255, 125, 92, 250, 70, 240, 150, 190, 100)
CT = (-1000, 30, -90, 55, 1100, 420, 8, 38, 30, 12, 80, 14, 70, 22, 40)
FA_VALUE = (0, 0, 0, 60, 0, 0, 20, 110, 520, 0, 0, 20, 60, 160, 240)

BRAIN = (66.0, 82.0, 62.0)  # radii in mm
BRAIN_CENTRE = (0.0, 4.0, 16.0)  # LPS in mm


def _radius(grid, centre, radii):
    x, y, z = (axis - middle for axis, middle in zip((grid.x, grid.y, grid.z), centre))
    return np.sqrt((x / radii[0]) ** 2 + (y / radii[1]) ** 2 + (z / radii[2]) ** 2)


def _skin_and_face(grid, tissue):
    """Scalp, face, neck with their fat, muscle, jaws and airways."""
    x, y, z = grid.x, grid.y, grid.z
    for value, shrink in ((SKIN, 0), (FAT, 3), (MUSCLE, 7)):
        head = _radius(grid, BRAIN_CENTRE, [r + 16 - shrink for r in BRAIN]) < 1
        slim = 1 - 0.26 * np.clip((-z - 22) / 66, 0, 1)  # the face narrows to the chin
        face = (np.abs(x) / (58 * slim - shrink)) ** 2.1 + (np.abs(y + 36) / (53 * slim - shrink)) ** 2.1 < 1
        face = face & (z < 10) & (z > -92 + shrink)
        back = 14 + 0.10 * np.clip(-z - 40, 0, 60)
        neck = (x / (52 - shrink)) ** 2 + ((y - back) / (56 - shrink)) ** 2 < 1
        neck = neck & (z < -10)
        tissue[head | face | neck] = value
    ellipsoid(grid, tissue, (0, -96, -26), (14, 16, 20), SKIN)  # nose
    for side in (-1, 1):
        ellipsoid(grid, tissue, (side * 84, 14, -6), (7, 14, 24), SKIN)  # ears
    jaw = curve([(-48, 0, -44), (-44, -44, -76), (0, -76, -84), (44, -44, -76), (48, 0, -44)])
    tube(grid, tissue, jaw, 7, SKULL)
    tube(grid, tissue, jaw, 3.5, MARROW)
    tube(
        grid,
        tissue,
        curve([(-36, -38, -50), (-24, -66, -52), (0, -76, -53), (24, -66, -52), (36, -38, -50)]),
        7,
        SKULL,
    )
    ellipsoid(grid, tissue, (0, -46, -66), (22, 26, 10), MUSCLE)  # tongue
    ellipsoid(grid, tissue, (0, -66, -26), (12, 26, 22), AIR)  # nose cavity
    tube(grid, tissue, [(0, -36, -38), (0, -14, -60), (0, -12, -120)], 7, AIR)
    for side in (-1, 1):
        ellipsoid(grid, tissue, (side * 26, -58, -30), (10, 14, 14), AIR)  # sinuses of the upper jaw
        tube(grid, tissue, [(side * 30, -72, -8), (side * 52, -60, -10), (side * 64, -10, -12)], 4.5, SKULL)


def _skull(grid, tissue):
    r = _radius(grid, BRAIN_CENTRE, [radius + 8 for radius in BRAIN])
    thickness = 8 / np.mean(BRAIN)
    vault = (r < 1) & (grid.z > -34)
    tissue[vault] = SKULL
    tissue[vault & (r < 1 - 0.30 * thickness) & (r > 1 - 0.66 * thickness)] = MARROW
    base = (r < 0.86) & (np.abs(grid.z + 26) < 5)
    tissue[base & (np.abs(grid.x) > 6)] = SKULL


def _brain(grid, tissue, seed):
    """Folded grey matter around white matter, cerebellum, brain stem, deep nuclei."""
    r = _radius(grid, BRAIN_CENTRE, BRAIN)
    inside = (r < 1) & (grid.z > -24)
    tissue[inside] = FLUID
    cells = [max(3, int(n * step / 18)) for n, step in zip(grid.shape, grid.spacing[::-1])]
    folds = smooth_field(grid.shape, cells, seed)
    fine = smooth_field(grid.shape, [2 * c for c in cells], seed + 1)
    bumpy = r + 0.055 * folds + 0.022 * fine
    middle = ((grid.y - 6) / 54) ** 2 + ((grid.z - 10) / 38) ** 2 > 1
    split = (np.abs(grid.x) < 1.6) & middle & (grid.z > 0) & (fine > -0.15)  # between the hemispheres
    cortex = inside & ~split
    groove = np.abs(folds + 0.35 * fine)  # grooves run where this field changes sign
    tissue[cortex & (bumpy < 0.98) & ~((groove < 0.12) & (bumpy > 0.74))] = GREY
    tissue[cortex & (bumpy < 0.90) & ~((groove < 0.38) & (bumpy > 0.66))] = WHITE
    back = _radius(grid, (0, 52, -24), (50, 30, 24))
    tissue[(back < 1.06)] = FLUID
    leaves = np.sin(grid.z * 0.9 + 2 * folds) > 0.2
    tissue[back < 1] = GREY
    tissue[(back < 0.86) & leaves] = WHITE
    tube(grid, tissue, [(0, 12, 6), (0, 20, -24), (0, 22, -70), (0, 26, -130)], [13, 14, 9, 6.5], WHITE)
    tube(grid, tissue, [(0, 26, -44), (0, 30, -130)], [3, 3], WHITE)
    for side in (-1, 1):
        ellipsoid(grid, tissue, (side * 13, 12, 24), (9, 15, 10), NUCLEUS)  # thalamus
        ellipsoid(grid, tissue, (side * 25, -6, 22), (7, 19, 12), NUCLEUS)


def _ventricles(grid, tissue):
    for side in (-1, 1):
        horn = curve(
            [(side * 9, -28, 32), (side * 9, -4, 40), (side * 13, 22, 38), (side * 22, 38, 26), (side * 30, 26, 6)]
        )
        tube(grid, tissue, horn, [7] * 24 + [7.5] * 12 + [5.5] * 13, FLUID)
    ellipsoid(grid, tissue, (0, 8, 18), (2.6, 14, 10), FLUID)
    ellipsoid(grid, tissue, (0, 36, -18), (7, 5, 11), FLUID)


def _eyes(grid, tissue):
    for side in (-1, 1):
        ellipsoid(grid, tissue, (side * 32, -66, -2), (19, 24, 17), FAT)
        ellipsoid(grid, tissue, (side * 32, -76, -2), (13, 13, 13), EYE)
        ellipsoid(grid, tissue, (side * 32, -86, -2), (5, 3, 5), LENS)
        tube(grid, tissue, [(side * 31, -63, -2), (side * 16, -34, 0)], 2.6, WHITE)


def _tumour(grid, tissue, centre, radius):
    """A ring of enhancing tissue around a dead middle, with swelling around it."""
    swelling = np.isin(tissue, (WHITE, NUCLEUS))
    ellipsoid(grid, tissue, centre, (radius * 1.8, radius * 2.0, radius * 1.7), EDEMA, swelling)
    ellipsoid(grid, tissue, centre, (radius, radius * 1.1, radius * 0.95), RIM)
    ellipsoid(grid, tissue, (centre[0] + 1, centre[1], centre[2]), (radius * 0.66, radius * 0.72, radius * 0.6), CYST)


def tissues(grid, seed=5, tumour=None):
    """The map of tissues.  `tumour` is ((x, y, z) LPS in mm, radius in mm)."""
    tissue = np.zeros(grid.shape, np.uint8)
    _skin_and_face(grid, tissue)
    _skull(grid, tissue)
    _brain(grid, tissue, seed)
    _ventricles(grid, tissue)
    _eyes(grid, tissue)
    if tumour is not None:
        _tumour(grid, tissue, *tumour)
    return tissue


def mr(grid, tissue, table=T1, seed=21):
    """MR picture of a tissue map: uneven coil sensitivity, noise."""
    volume = blur(np.asarray(table, np.float32)[tissue])
    shading = 1 + 0.10 * smooth_field(grid.shape, (2, 2, 2), seed)
    rough = np.hypot(volume * shading + noise(grid.shape, 4, seed + 1), noise(grid.shape, 3, seed + 2))
    return as_voxels(rough, 0, 1023)


def ct(grid, tissue, seed=31):
    """CT of a tissue map in HU."""
    volume = blur(np.asarray(CT, np.float32)[tissue]) + noise(grid.shape, 6, seed)
    return as_voxels(volume, -1024, 3071)
