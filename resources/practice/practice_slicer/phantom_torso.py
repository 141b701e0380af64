"""A CT phantom of the torso in Hounsfield units, from the shoulders to the pelvis.

One description serves chest, heart, liver and abdomen: the grid says which part is seen.  z = 0 is the middle of the
chest.  Bone has a dense shell and spongy marrow, so a threshold of 150 to 200 HU gives ribs, spine and sternum.
"""

import numpy as np

from .phantom_tools import as_voxels, blur, curve, ellipsoid, noise, smooth_field, tube

AIR, LUNG, FAT, MUSCLE, SOFT = -1000, -860, -100, 55, 40
CARTILAGE, MARROW, CORTEX = 110, 330, 900
CAGE_CENTRE = -2.0  # y in mm of the middle of the rib cage
SPINE_Y = 56.0  # y in mm of the middle of the vertebral bodies
VERTEBRA = 25.0  # mm from one vertebra to the next
RIB_COUNT = 11

# Half width and half depth in mm of the rib cage, and of the body, at heights z in mm.
HEIGHTS = (-420, -330, -250, -190, -140, -60, 20, 70, 105, 130, 150)
CAGE_WIDTH = (118, 116, 112, 114, 118, 122, 114, 98, 76, 56, 44)
CAGE_DEPTH = (76, 74, 74, 78, 84, 86, 80, 70, 57, 44, 36)
BODY_WIDTH = (152, 146, 138, 138, 142, 148, 150, 148, 138, 122, 104)
BODY_DEPTH = (110, 106, 104, 104, 108, 110, 106, 98, 90, 82, 76)


def _profile(z, values):
    return np.interp(z, HEIGHTS, values).astype(np.float32)


class _Torso:
    """The fields that all parts use: distances from the rib cage and from the skin."""

    def __init__(self, grid, blood, seed):
        self.grid, self.blood, self.seed = grid, blood, seed
        self.x, self.y, self.z = grid.x, grid.y, grid.z
        self.volume = np.full(grid.shape, AIR, np.float32)
        self.width, self.depth = _profile(self.z, CAGE_WIDTH), _profile(self.z, CAGE_DEPTH)
        dy = self.y - CAGE_CENTRE
        self.relative = np.sqrt((self.x / self.width) ** 2 + (dy / self.depth) ** 2)
        radius = np.sqrt(self.x**2 + dy**2)
        # mm outside the rib cage, negative inside.
        self.outside_cage = radius - radius / np.maximum(self.relative, 1e-3)
        # 0 at the back, 1 at the front.
        self.around = 1 - np.arctan2(np.abs(self.x) / self.width, -dy / self.depth) / np.pi
        body = (np.abs(self.x) / _profile(self.z, BODY_WIDTH)) ** 2.4
        self.body = body + (np.abs(self.y - 4) / _profile(self.z, BODY_DEPTH)) ** 2.4


def _walls(torso):
    """Skin, fat, muscle, and what lies inside the cage."""
    volume, body = torso.volume, torso.body
    volume[body < 1] = 30  # skin
    volume[body < 0.955] = FAT
    volume[(torso.outside_cage < 12) & (body < 0.86)] = MUSCLE
    back = (np.abs(torso.x) < 62) & (torso.y > 52) & (body < 0.86)
    volume[back] = MUSCLE
    volume[torso.outside_cage < -4] = SOFT
    belly = (torso.outside_cage < -14) & (torso.z < -150)
    volume[belly] = -90  # fat between the organs


def _diaphragm(torso):
    """Height z in mm of the diaphragm: a dome on each side, the right one higher."""
    top = np.where(torso.x < 0, -62.0, -74.0)
    return top - 55 * np.clip(torso.relative, 0, 1) ** 2.5 + 18 * np.exp(-((torso.x / 22) ** 2)) - 12


def _lungs(torso):
    """The mask of both lungs."""
    front = np.clip((torso.y + 45) / 45, 0, 1)  # in front the lungs nearly meet behind the breastbone
    middle = 9 + 15 * front + (4 + 6 * front) * np.exp(-(((torso.z + 5) / 35) ** 2))
    middle = middle + 5 * np.clip((torso.y - 25) / 20, 0, 1)
    middle = middle * np.where(torso.z > 70, 0.8, 1.0)
    lungs = (torso.outside_cage < -7) & (np.abs(torso.x) > middle)
    lungs &= torso.z > _diaphragm(torso)
    lungs &= torso.z < 122 - 40 * torso.relative**4
    torso.volume[lungs] = LUNG
    return lungs


def _heart(torso, lungs, beat):
    """Heart chambers, great vessels; the pericardium pushes the lungs aside.  `beat` scales the ventricles."""
    grid, volume, blood = torso.grid, torso.volume, torso.blood
    ellipsoid(grid, volume, (20, -22, -42), (60, 46, 52), -60)
    ellipsoid(grid, volume, (20, -22, -42), (56, 42, 48), 95)
    ellipsoid(grid, volume, (38, -14, -52), (27 * beat, 24 * beat, 30 * beat), blood)
    ellipsoid(grid, volume, (-2, -36, -46), (30 * beat, 20 * beat, 32 * beat), blood * 0.8)
    ellipsoid(grid, volume, (14, 12, -22), (30, 15, 22), blood)
    ellipsoid(grid, volume, (-28, -14, -28), (18, 20, 26), blood * 0.8)
    ascending = curve([(6, -18, -16), (-6, -26, 12), (-8, -22, 36), (2, -6, 52), (16, 18, 50), (20, 34, 32)])
    descending = [(20, 34, 32), (18, 38, -20), (14, 36, -110), (6, 30, -190), (4, 28, -280), (3, 26, -330)]
    tube(grid, volume, ascending, 15.5, 60)
    tube(grid, volume, descending, [14, 13.5, 12.5, 11.5, 10.5, 10], 60)
    tube(grid, volume, ascending, 13.5, blood)
    tube(grid, volume, descending, [12, 11.5, 10.5, 9.5, 8.5, 8], blood)
    for side in (-1, 1):
        tube(grid, volume, [(3, 26, -326), (side * 28, 24, -372), (side * 48, 6, -420)], [7, 6, 5], blood)
        tube(
            grid,
            volume,
            curve([(16, 2, 58), (side * 14, -8, 84), (side * 24, -2, 125), (side * 26, 4, 150)]),
            4.5,
            blood,
        )
        tube(grid, volume, curve([(6, -14, 8), (side * 24, 2, 12), (side * 46, 8, 6)]), [9] * 24 + [6], blood * 0.9)
    tube(grid, volume, curve([(4, -42, -20), (8, -32, 2), (8, -18, 14)]), 12.5, blood * 0.9)
    tube(grid, volume, [(-26, -16, 70), (-26, -14, 30), (-26, -12, -10)], 8.5, blood * 0.8)
    tube(grid, volume, [(-22, 10, -70), (-24, 22, -120), (-20, 26, -330)], 10, blood * 0.6)
    tube(grid, volume, [(0, 14, 150), (0, 16, 60), (-2, 20, 20)], 9.5, SOFT)
    tube(grid, volume, [(0, 14, 150), (0, 16, 60), (-2, 20, 24)], 7.5, AIR)
    for side in (-1, 1):
        tube(
            grid,
            volume,
            curve([(-2, 20, 26), (side * 18, 20, 10), (side * 40, 18, -8)]),
            [6.5] * 12 + [6] * 12 + [4.5],
            AIR,
        )
    lungs &= volume < -500


def _lung_vessels(torso, lungs):
    """Branching vessels from each hilum outwards."""
    random = np.random.default_rng(torso.seed)
    for side in (-1, 1):
        hilum = np.array([side * 40.0, 8.0, 2.0])
        for _ in range(15):
            direction = random.normal(0, 1, 3) * (0.6, 0.9, 1.2) + (side * 0.9, 0, 0)
            _branch(torso, lungs, random, hilum, direction, 4.4, 4)


def _branch(torso, lungs, random, start, direction, radius, generations):
    direction = direction / np.linalg.norm(direction)
    end = start + direction * random.uniform(18, 30)
    tube(torso.grid, torso.volume, [start, end], [radius, radius * 0.75], 35, lungs)
    if generations:
        for _ in range(2):
            _branch(torso, lungs, random, end, direction + random.normal(0, 0.5, 3), radius * 0.68, generations - 1)


def _organs(torso):
    """Liver, spleen, stomach, kidneys, bowel: what lies under the diaphragm."""
    grid, volume = torso.grid, torso.volume
    belly = (torso.outside_cage < -9) & (torso.z < _diaphragm(torso) - 3)
    volume[belly & (torso.z > -160)] = -85
    loops = smooth_field(grid.shape, (max(2, grid.shape[0] // 8), 12, 12), torso.seed + 1)
    bowel = belly & (torso.z - 30 * loops < -222)
    volume[bowel & (torso.y < 20) & (loops > -0.12)] = 35
    volume[bowel & (torso.y < -5) & (loops > 0.52)] = -820
    ellipsoid(grid, volume, (58, 34, -128), (36, 38, 46), 105, belly)  # spleen
    ellipsoid(grid, volume, (44, -14, -132), (44, 38, 48), 25, belly)  # stomach
    ellipsoid(grid, volume, (50, -32, -118), (26, 18, 26), -900, belly)
    ellipsoid(grid, volume, (-52, -4, -130), (74, 70, 86), 98, belly)  # liver
    ellipsoid(grid, volume, (4, -34, -120), (48, 30, 40), 98, belly & (torso.x < 36))
    ellipsoid(grid, volume, (-62, 14, -128), (15, 15, 15), 58, belly)  # a lesion to be found
    ellipsoid(grid, volume, (-34, -34, -184), (14, 16, 24), 12, belly)  # gall bladder
    for point, size in (((-44, -6, -112), 4.5), ((-72, 22, -104), 3.5), ((-30, 16, -96), 4)):
        tube(grid, volume, [(-22, 14, -128), point], [6, size], min(torso.blood, 150), belly)
    for side in (-1, 1):
        centre = (side * 58, 40, -218 - 8 * (side < 0))
        ellipsoid(grid, volume, centre, (26, 24, 52), 160, belly)
        ellipsoid(grid, volume, (centre[0] - side * 8, centre[1], centre[2]), (14, 12, 34), 40, belly)
    tube(grid, volume, curve([(-24, -14, -196), (4, -18, -186), (40, 4, -172)]), 11, 70, belly)  # pancreas


def _bone(volume, depth, region, cortex=CORTEX, marrow=MARROW):
    """Fill bone where `depth` < 1: dense from 0.62 to 1, spongy inside.  `region` are the indices of `depth`."""
    bone = depth < 1
    values = np.where(depth > 0.62, cortex, marrow)
    part = volume[region]
    part[bone] = values[bone]
    volume[region] = part


def _spine(torso):
    """Vertebrae with discs, canal, arches and processes."""
    box = torso.grid.box((-46, 30, -1000), (46, 120, 1000))
    x, y, z = torso.grid.part(box)
    size = 1 + np.clip(-z, 0, 400) / 1600 - np.clip(z, 0, 150) / 500
    level = (z / VERTEBRA + 100.5) % 1 - 0.5  # 0 in the middle of a vertebra, 0.5 in the middle of a disc
    waist = 1 - 0.10 * np.cos(2 * np.pi * level)
    body = np.sqrt((x / (19 * size * waist)) ** 2 + ((y - SPINE_Y) / (15 * size * waist)) ** 2)
    disc = np.abs(level) > 0.41
    part = torso.volume[box]
    part[np.broadcast_to((body < 1) & disc, part.shape)] = 95
    end_plate = np.clip((np.abs(level) - 0.35) / 0.06, 0, 1) * 0.3
    depth = np.where(disc, 2, np.maximum(np.clip(body + 0.02, 0, 2), np.where(body < 1, 0.62 + end_plate - 0.28, 0)))
    torso.volume[box] = part
    _bone(torso.volume, np.broadcast_to(depth, part.shape), box, 750, 260)
    canal_y = SPINE_Y + 15 * size + 9
    ring = np.sqrt(x**2 + (y - canal_y) ** 2)
    arch = (np.abs(ring - 11.5) < 3.2) & (np.abs(level) < 0.36)
    slant = z + 0.55 * (y - canal_y)  # processes point down and back
    spinous_level = (slant / VERTEBRA + 100.5) % 1 - 0.5
    spinous = (np.abs(x) < 3.4) & (y > canal_y + 11) & (y < canal_y + 29) & (np.abs(spinous_level) < 0.24)
    reach = np.abs(x) - 34 * size
    transverse = (reach < 0) & (np.abs(x) > 9) & (np.abs(y - canal_y - 2 - 0.22 * np.abs(x)) < 4.2)
    transverse = transverse & (np.abs(level) < 0.17)
    part = torso.volume[box]
    part[np.broadcast_to(arch | spinous | transverse, part.shape)] = 620
    part[np.broadcast_to(ring < 8.4, part.shape)] = 25
    torso.volume[box] = part


def _ribs(torso):
    """Rib pairs that fall from the spine to the front, with cartilage to the breastbone."""
    # Only a thin shell around the cage can be rib.
    shell = np.nonzero((np.abs(torso.outside_cage) < 9) & (torso.z > -260) & (torso.z < 150))
    around, outside = torso.around[shell], torso.outside_cage[shell]
    height = np.broadcast_to(torso.z, torso.grid.shape)[shell]
    values = torso.volume[shell]
    for number in range(1, RIB_COUNT + 1):
        start = 137.5 - VERTEBRA * number + 12.5
        fall = min(30 + 9 * number, 84)
        bony = (0.86, 0.84, 0.82, 0.80, 0.78, 0.76, 0.74, 0.68, 0.62, 0.56, 0.42)[number - 1]
        t = np.clip(around / 0.82, 0, 1)
        middle = start - fall * (0.35 * t + 0.65 * np.sin(t * np.pi / 2) ** 2)
        rise = np.clip((around - bony) / (0.96 - bony), 0, 1) * (6 if number < 3 else 8 + 7.5 * (number - 2))
        middle = middle + rise
        depth = np.sqrt((outside / 5.0) ** 2 + ((height - middle) / 6.8) ** 2)
        is_bone = (depth < 1) & (around > 0.075) & (around < bony)
        values[is_bone] = np.where(depth[is_bone] > 0.6, CORTEX - 150, MARROW)
        if number <= 10:
            gristle = (depth < 0.95) & (around >= bony) & (around < 0.955)
            values[gristle] = CARTILAGE
    torso.volume[shell] = values


def _breastbone(torso):
    """Manubrium, body and tip of the breastbone."""
    z = torso.z
    half_width = np.interp(z, (-62, -40, -20, 40, 52, 60, 92, 100), (0, 5, 15, 13, 11, 17, 26, 20)).astype(np.float32)
    half_width = np.where((z > -62) & (z < 100), half_width, 0.01)
    depth = np.maximum(np.abs(torso.x) / half_width, np.abs(torso.outside_cage) / 5.5)
    depth = np.where(torso.y < CAGE_CENTRE, depth, 2)
    _bone(torso.volume, depth, (slice(None),) * 3, 560, 240)


def _shoulder_bones(torso):
    """Collar bones and shoulder blades."""
    grid, volume = torso.grid, torso.volume
    for side in (-1, 1):
        line = curve([(side * 22, -50, 100), (side * 50, -52, 108), (side * 84, -28, 118), (side * 116, -8, 122)])
        tube(grid, volume, line, 6.5, 800)
        tube(grid, volume, line, 3.6, MARROW)
    top, bottom = 0.24, 0.40
    low = np.clip((torso.z - 18) / 92, 0, 1)  # 0 at the lower tip, 1 at the upper edge
    blade = (np.abs(torso.outside_cage - 15) < 2.6) & (torso.z > 14) & (torso.z < 112)
    edge = 0.5 * (top + bottom) + 0.01
    blade &= (torso.around > edge - 0.02 - 0.10 * low) & (torso.around < edge + 0.015 + 0.06 * low)
    volume[blade & (torso.body < 0.9)] = 640
    for side in (-1, 1):
        tube(grid, volume, [(side * 70, 76, 86), (side * 108, 46, 108), (side * 120, 14, 118)], 5, 680)


def _pelvis(torso):
    """The wings of the hip bones and the sacrum."""
    if float(torso.z.min()) > -330:
        return
    wing = (np.abs(torso.outside_cage + 8 + 0.10 * (torso.z + 360)) < 4.0) & (torso.z < -338)
    wing &= (torso.around > 0.16) & (torso.around < 0.62 - 0.0022 * (torso.z + 420))
    torso.volume[wing] = 700
    ellipsoid(torso.grid, torso.volume, (0, 66, -425), (48, 20, 40), 420)


def _table(torso):
    """The table top under the patient: a thin shell filled with foam."""
    top = 121 - 0.0011 * torso.x**2
    inside = (torso.y > top) & (torso.y < top + 11) & (np.abs(torso.x) < 152) & (torso.body > 1.02)
    core = inside & (torso.y > top + 3) & (torso.y < top + 8) & (np.abs(torso.x) < 149)
    torso.volume[inside] = -120
    torso.volume[np.broadcast_to(core, torso.grid.shape)] = -880


def torso(grid, blood=135, seed=11, table=True, beat=1.0):
    """The torso on a grid, as an int16 array in HU.  `blood` is the HU of vessels with contrast.

    `beat` scales the ventricles: 1 when they are full, less when the heart is contracted.
    """
    t = _Torso(grid, blood, seed)
    _walls(t)
    lungs = np.broadcast_to(_lungs(t), grid.shape).copy()
    _organs(t)
    _heart(t, lungs, beat)
    _lung_vessels(t, lungs)
    ellipsoid(grid, t.volume, (-66, -10, 52), (8, 8, 8), 45)  # a nodule to be found
    _spine(t)
    _ribs(t)
    _breastbone(t)
    _shoulder_bones(t)
    _pelvis(t)
    if table:
        _table(t)
    texture = 14 * smooth_field(grid.shape, (8, 16, 16), seed + 2)
    volume = blur(t.volume) + np.where(t.volume > -700, texture * 0.4, texture) + noise(grid.shape, 8, seed + 3)
    return as_voxels(volume, -1024, 3071)
