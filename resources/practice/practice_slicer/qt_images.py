"""Stand-in bytes, geometry, colours, images and painter of Qt, on top of Pillow.

These are real: a QImage holds pixels, a QPainter draws on them, saving writes the file.
"""

import base64
import io
import os

from PIL import Image, ImageColor, ImageDraw


class QByteArray:
    """Bytes that can grow."""

    def __init__(self, data=b""):
        self._b = bytearray(data.data() if isinstance(data, QByteArray) else data)

    def data(self):
        return bytes(self._b)

    def size(self):
        return len(self._b)

    length = count = size

    def append(self, x):
        self._b += x.data() if isinstance(x, QByteArray) else (x.encode() if isinstance(x, str) else x)

    def toBase64(self):
        return QByteArray(base64.b64encode(bytes(self._b)))

    def toStdString(self):
        return bytes(self._b).decode("utf8", "replace")

    def isEmpty(self):
        return not self._b

    def __len__(self):
        return len(self._b)

    def __bytes__(self):
        return bytes(self._b)


class QIODevice:
    """The modes in which files and buffers are opened."""

    NotOpen, ReadOnly, WriteOnly, ReadWrite, Append, Truncate, Text = 0, 1, 2, 3, 4, 8, 16


class QBuffer(QIODevice):
    """A file-like view of a QByteArray."""

    def __init__(self, array=None, *a):
        self._a = array if array is not None else QByteArray()

    def open(self, mode):
        return True

    def close(self):
        pass

    def write(self, b):
        self._a.append(b)

    def data(self):
        return self._a

    buffer = data

    def size(self):
        return len(self._a)


class QSize:
    """Width and height in pixels."""

    def __init__(self, w=0, h=0):
        self._w, self._h = int(w), int(h)

    def width(self):
        return self._w

    def height(self):
        return self._h


QSizeF = QSize


class QPoint:
    """A position in pixels."""

    def __init__(self, x=0, y=0):
        self._x, self._y = x, y

    def x(self):
        return self._x

    def y(self):
        return self._y


QPointF = QPoint


class QRect:
    """A rectangle in pixels."""

    def __init__(self, *a):
        if len(a) == 2:
            a = (a[0].x(), a[0].y(), a[1].width(), a[1].height())
        self._r = tuple(a) if a else (0, 0, 0, 0)

    def x(self):
        return self._r[0]

    left = x

    def y(self):
        return self._r[1]

    top = y

    def topLeft(self):
        return QPoint(self._r[0], self._r[1])

    def topRight(self):
        return QPoint(self._r[0] + self._r[2] - 1, self._r[1])

    def bottomLeft(self):
        return QPoint(self._r[0], self._r[1] + self._r[3] - 1)

    def bottomRight(self):
        return QPoint(self._r[0] + self._r[2] - 1, self._r[1] + self._r[3] - 1)

    def center(self):
        return QPoint(self._r[0] + self._r[2] // 2, self._r[1] + self._r[3] // 2)

    def size(self):
        return QSize(self._r[2], self._r[3])

    def width(self):
        return self._r[2]

    def height(self):
        return self._r[3]


QRectF = QRect


class QColor:
    """A colour with opacity, each part 0 to 255 (0 to 1 in the ...F members)."""

    def __init__(self, *a):
        self._a = 255
        if len(a) == 1 and isinstance(a[0], str):
            s = a[0].lstrip("#")
            try:
                if len(s) == 3:
                    s = "".join(c * 2 for c in s)
                self._rgb = tuple(int(s[i : i + 2], 16) for i in (0, 2, 4))
                self._ok = len(s) == 6
            except ValueError:
                try:
                    self._rgb = ImageColor.getrgb(a[0].lstrip("#"))[:3]
                    self._ok = True
                except ValueError:
                    self._rgb, self._ok = (0, 0, 0), False
        elif len(a) == 1 and isinstance(a[0], QColor):
            self._rgb, self._a, self._ok = a[0]._rgb, a[0]._a, True
        else:
            self._rgb = tuple(int(x) for x in a[:3]) if len(a) >= 3 else (0, 0, 0)
            self._a = int(a[3]) if len(a) > 3 else 255
            self._ok = len(a) >= 3

    @classmethod
    def fromRgbF(cls, r, g, b, a=1.0):
        return cls(round(r * 255), round(g * 255), round(b * 255), round(a * 255))

    @classmethod
    def fromRgb(cls, *a):
        return cls(*a)

    def isValid(self):
        return self._ok

    def setAlphaF(self, f):
        self._a = round(f * 255)

    def setAlpha(self, v):
        self._a = v

    def red(self):
        return self._rgb[0]

    def green(self):
        return self._rgb[1]

    def blue(self):
        return self._rgb[2]

    def alpha(self):
        return self._a

    def redF(self):
        return self._rgb[0] / 255

    def greenF(self):
        return self._rgb[1] / 255

    def blueF(self):
        return self._rgb[2] / 255

    def name(self):
        return "#%02x%02x%02x" % self._rgb

    def rgba(self):
        return self._rgb + (self._a,)


class QImage:
    """A picture; `im` is the Pillow image behind it, None for a null image."""

    (
        Format_Invalid,
        Format_Mono,
        Format_RGB32,
        Format_ARGB32,
        Format_RGB888,
        Format_RGBA8888,
        Format_Grayscale8,
    ) = 0, 1, 4, 5, 13, 17, 24

    def __init__(self, *a):
        if len(a) >= 2 and isinstance(a[0], int):
            self.im = Image.new("RGBA", (a[0], a[1]))
        elif a and isinstance(a[0], QSize):
            self.im = Image.new("RGBA", (a[0].width(), a[0].height()))
        elif a and isinstance(a[0], (QImage, QPixmap)):
            self.im = a[0].im.copy() if a[0].im else None
        elif a and isinstance(a[0], str):
            self.im = None
            self.load(a[0])
        elif a and hasattr(a[0], "tobytes"):
            self.im = a[0]
        else:
            self.im = None

    def load(self, path, *a):
        try:
            self.im = Image.open(path).convert("RGBA")
            return True
        except OSError:
            return False

    def fill(self, c):
        rgba = c.rgba() if isinstance(c, QColor) else ((c >> 16) & 255, (c >> 8) & 255, c & 255, (c >> 24) & 255)
        self.im.paste(rgba, (0, 0) + self.im.size)

    def isNull(self):
        return self.im is None

    def width(self):
        return self.im.size[0] if self.im else 0

    def height(self):
        return self.im.size[1] if self.im else 0

    def size(self):
        return QSize(self.width(), self.height())

    def copy(self, *a):
        if a and isinstance(a[0], QRect):
            r = a[0]
            return type(self)(self.im.crop((r.x(), r.y(), r.x() + r.width(), r.y() + r.height())))
        return type(self)(self.im.copy())

    def scaled(self, *a):
        if isinstance(a[0], QSize):
            w, h, rest = a[0].width(), a[0].height(), a[1:]
        else:
            w, h, rest = a[0], a[1], a[2:]
        if rest and rest[0] in (1, 2) and self.im:
            f = (min if rest[0] == 1 else max)(w / self.width(), h / self.height())
            w, h = max(1, round(self.width() * f)), max(1, round(self.height() * f))
        return type(self)(self.im.resize((int(w), int(h))))

    def scaledToWidth(self, w, *a):
        return self.scaled(w, round(self.height() * w / self.width()))

    def scaledToHeight(self, h, *a):
        return self.scaled(round(self.width() * h / self.height()), h)

    def save(self, to, fmt=None, quality=-1):
        if self.im is None:
            return False
        if fmt is None:
            fmt = os.path.splitext(to)[1].lstrip(".") if isinstance(to, str) else "PNG"
        fmt = {"jpg": "JPEG"}.get(fmt.lower(), fmt.upper())
        im = self.im.convert("RGB") if fmt in ("JPEG", "BMP") else self.im
        out = io.BytesIO()
        im.save(out, fmt, **({"quality": quality} if fmt == "JPEG" and quality >= 0 else {}))
        if isinstance(to, str):
            try:
                with open(to, "wb") as f:
                    f.write(out.getvalue())
            except OSError:
                return False
        else:
            to.write(out.getvalue())
        return True

    def pixelColor(self, x, y):
        return QColor(*self.im.getpixel((x, y)))

    def toImage(self):
        return QImage(self.im)


class QPixmap(QImage):
    """The same as a QImage here."""

    @classmethod
    def fromImage(cls, im, *a):
        return cls(im.im)

    @classmethod
    def grabWidget(cls, w, *a):
        return w.grab()

    def fill(self, c=None):
        super().fill(c if c is not None else QColor(255, 255, 255))


class QIcon:
    """An icon that keeps where it came from and shows nothing."""

    Normal, Disabled, Active, Selected, On, Off = 0, 1, 2, 3, 0, 1

    def addPixmap(self, *a):
        pass

    addFile = addPixmap

    def __init__(self, *a):
        self.src = a[0] if a else None

    def pixmap(self, *a):
        return QPixmap(16, 16)

    def isNull(self):
        return self.src is None


class QPen:
    """Colour and width of lines."""

    def __init__(self, *a):
        self.c = a[0] if a and isinstance(a[0], QColor) else QColor(0, 0, 0)
        self.w = 1

    def setColor(self, c):
        self.c = QColor(c)

    def setWidth(self, w):
        self.w = w

    def setStyle(self, s):
        pass


class QBrush(QPen):
    """Colour of areas."""


class QFont:
    """A font of which only the size is kept."""

    def __init__(self, *a):
        self.size = 12

    def setPointSize(self, n):
        self.size = n

    setPixelSize = setPointSize

    def setBold(self, b):
        pass

    def family(self):
        return "sans"


class QPainter:
    """Draws on a QImage or QPixmap."""

    Antialiasing = 1

    def __init__(self, target=None):
        self.p, self.b = QPen(), None
        if target is not None:
            self.begin(target)

    def begin(self, target):
        self.target = target
        self.d = ImageDraw.Draw(target.im)
        return True

    def end(self):
        return True

    def setPen(self, p):
        self.p = p if isinstance(p, QPen) else QPen(p)

    def setBrush(self, b):
        self.b = b

    def setFont(self, f):
        pass

    def setRenderHint(self, *a):
        pass

    def drawRect(self, *a):
        r = a[0] if isinstance(a[0], QRect) else QRect(*a)
        self.d.rectangle((r.x(), r.y(), r.x() + r.width(), r.y() + r.height()), outline=self.p.c.rgba(), width=self.p.w)

    def drawLine(self, *a):
        if len(a) == 2:
            a = (a[0].x(), a[0].y(), a[1].x(), a[1].y())
        self.d.line(a, fill=self.p.c.rgba(), width=self.p.w)

    def drawText(self, *a):
        if isinstance(a[0], QPoint):
            x, y, t = a[0].x(), a[0].y(), a[1]
        elif isinstance(a[0], QRect):
            x, y, t = a[0].x(), a[0].y() + 12, a[-1]
        else:
            x, y, t = a
        self.d.text((x, y - 10), str(t), fill=self.p.c.rgba())

    def drawPixmap(self, x, y, pm, *a):
        self.target.im.paste(pm.im, (int(x), int(y)))

    drawImage = drawPixmap

    def fillRect(self, r, c):
        c = c if isinstance(c, QColor) else QColor(c)
        self.d.rectangle((r.x(), r.y(), r.x() + r.width(), r.y() + r.height()), fill=c.rgba())
