"""A prostate between bladder and rectum, as an MR picture and as an ultrasound fan."""

import numpy as np

from .phantom_tools import as_voxels, blur, ellipsoid, noise, smooth_field

TISSUE_MR = (4, 60, 150, 230, 105, 150, 60, 15)
TISSUE_US = (0, 70, 95, 10, 120, 90, 50, 4)
OUTSIDE, MUSCLE, FAT, URINE, GLAND, ZONE, LESION, GAS = range(8)


def tissues(grid):
    """The map of tissues around the prostate, which lies in the middle of the grid."""
    tissue = np.full(grid.shape, MUSCLE, np.uint8)
    ellipsoid(grid, tissue, (0, 0, 0), (62, 52, 70), FAT)
    ellipsoid(grid, tissue, (0, -14, 46), (36, 28, 26), URINE)
    ellipsoid(grid, tissue, (0, 0, 0), (28, 21, 24), ZONE)
    ellipsoid(grid, tissue, (0, -5, 4), (19, 14, 18), GLAND)
    ellipsoid(grid, tissue, (15, 12, -4), (6, 5, 6), LESION)
    ellipsoid(grid, tissue, (0, 38, 0), (15, 12, 80), MUSCLE)
    ellipsoid(grid, tissue, (0, 38, 0), (9, 7, 78), GAS)
    return tissue


def mr(grid, seed=41):
    volume = blur(np.asarray(TISSUE_MR, np.float32)[tissues(grid)])
    volume = volume + 8 * smooth_field(grid.shape, (6, 16, 16), seed) + noise(grid.shape, 5, seed + 1)
    return as_voxels(volume, 0, 1023)


def ultrasound(grid, seed=43):
    """Speckle, weaker with depth, only inside the fan that a probe in the rectum sees."""
    volume = np.asarray(TISSUE_US, np.float32)[tissues(grid)]
    speckle = np.hypot(noise(grid.shape, 0.6, seed), noise(grid.shape, 0.6, seed + 1))
    depth = np.hypot(grid.x, grid.y - 38)
    fan = (depth < 74) & (depth > 7) & (np.arctan2(np.abs(grid.x), 38 - grid.y) < 1.15)
    volume = volume * speckle * np.exp(-depth / 120) * fan
    return as_voxels(blur(volume), 0, 255)
