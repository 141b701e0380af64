"""Tools to build phantoms: a grid of patient coordinates, soft-edged shapes, tubes, noise.

Coordinates are LPS in mm: x to the left, y to the back, z to the head, 0 in the middle of the body.  Arrays are
indexed [k, j, i] as VTK and Slicer do.
"""

import numpy as np


class Grid:
    """The voxel centres of an axial volume.

    `size` is (columns, rows, slices), `spacing` in mm, `centre` the LPS position in mm of the middle of the volume.
    """

    def __init__(self, size, spacing, centre=(0.0, 0.0, 0.0)):
        self.size, self.spacing, self.centre = size, spacing, centre
        axes = [
            (np.arange(n, dtype=np.float32) - (n - 1) / 2) * step + middle
            for n, step, middle in zip(size, spacing, centre)
        ]
        self.axes = axes
        self.x, self.y, self.z = axes[0][None, None, :], axes[1][None, :, None], axes[2][:, None, None]

    @property
    def shape(self):
        return self.size[::-1]

    def box(self, low, high):
        """Slices [k, j, i] of the part of the grid between two LPS corners; parts may be empty."""
        found = []
        for axis, start, end in zip(self.axes, low, high):
            found.append(slice(int(np.searchsorted(axis, start)), int(np.searchsorted(axis, end, side="right"))))
        return tuple(reversed(found))

    def part(self, box):
        """The x, y, z coordinates of a part of the grid, ready to broadcast."""
        k, j, i = box
        return self.x[:, :, i], self.y[:, j, :], self.z[k, :, :]


def ellipsoid(grid, volume, centre, radii, value, where=None):
    """Fill an ellipsoid with a value; `where` is a mask that limits it.  Radii in mm."""
    low = [c - r for c, r in zip(centre, radii)]
    high = [c + r for c, r in zip(centre, radii)]
    box = grid.box(low, high)
    x, y, z = grid.part(box)
    inside = ((x - centre[0]) / radii[0]) ** 2 + ((y - centre[1]) / radii[1]) ** 2
    inside = inside + ((z - centre[2]) / radii[2]) ** 2 < 1
    if where is not None:
        inside &= where[box]
    volume[box][inside] = value


def tube(grid, volume, points, radii, value, where=None):
    """Fill a tube along LPS points; `radii` in mm: one number, or one for each point."""
    points = [np.asarray(point, dtype=np.float32) for point in points]
    if np.isscalar(radii):
        radii = [radii] * len(points)
    for start, end, first, last in zip(points, points[1:], radii, radii[1:]):
        reach = max(first, last) + max(grid.spacing) * 0.5
        box = grid.box(np.minimum(start, end) - reach, np.maximum(start, end) + reach)
        x, y, z = grid.part(box)
        axis = end - start
        along = (x - start[0]) * axis[0] + (y - start[1]) * axis[1] + (z - start[2]) * axis[2]
        along = np.clip(along / max(float(axis @ axis), 1e-6), 0, 1)
        distance = (x - start[0] - along * axis[0]) ** 2 + (y - start[1] - along * axis[1]) ** 2
        distance = distance + (z - start[2] - along * axis[2]) ** 2
        inside = distance < (first + along * (last - first)) ** 2
        if where is not None:
            inside &= where[box]
        volume[box][inside] = value


def curve(points, steps=12):
    """A smooth line (Catmull-Rom) through points, as a list of points."""
    points = [np.asarray(point, dtype=float) for point in points]
    padded = [2 * points[0] - points[1], *points, 2 * points[-1] - points[-2]]
    found = []
    for before, start, end, after in zip(padded, padded[1:], padded[2:], padded[3:]):
        for t in np.arange(steps) / steps:
            found.append(
                0.5
                * (
                    2 * start
                    + (end - before) * t
                    + (2 * before - 5 * start + 4 * end - after) * t**2
                    + (3 * start - before - 3 * end + after) * t**3
                )
            )
    return [*found, points[-1]]


def blur(volume, axes=(1, 2)):
    """Average neighbours with weights 1-2-1 along the axes: a scanner does not see sharp edges."""
    for axis in axes:
        padded = np.pad(volume, [(1, 1) if a == axis else (0, 0) for a in range(3)], mode="edge")
        centre = np.take(padded, range(1, padded.shape[axis] - 1), axis)
        before = np.take(padded, range(0, padded.shape[axis] - 2), axis)
        after = np.take(padded, range(2, padded.shape[axis]), axis)
        volume = 0.25 * before + 0.5 * centre + 0.25 * after
    return volume


def noise(shape, sigma, seed):
    """Normal noise, slightly grainy in the slice plane; the same for the same seed."""
    raw = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    grainy = blur(raw)
    return grainy * (sigma / float(grainy.std()))


def smooth_field(shape, cells, seed):
    """A smooth random field between about -1 and 1; `cells` is how many bumps there are along each axis."""
    coarse = np.random.default_rng(seed).uniform(-1, 1, [n + 2 for n in cells]).astype(np.float32)
    for axis, (n, count) in enumerate(zip(shape, cells)):
        at = np.linspace(0, count, n, dtype=np.float32)
        low = np.minimum(at.astype(int), count)
        t = at - low
        t = (t * t * (3 - 2 * t)).reshape([-1 if a == axis else 1 for a in range(3)])
        coarse = np.take(coarse, low, axis) * (1 - t) + np.take(coarse, low + 1, axis) * t
    return coarse


def as_voxels(volume, low, high):
    """The volume as 16-bit whole numbers within limits."""
    return np.clip(np.rint(volume), low, high).astype(np.int16)
