//! Icons as a few strokes on a 16 × 16 grid. Drawn, not typed: they have one weight, follow the text colour, stay sharp at
//! every zoom, and no font has to contain them.

use egui::{Color32, Painter, Pos2, Rect, Shape, Stroke, StrokeKind, vec2};

/// What can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    Book,
    Camera,
    Check,
    ChevronDown,
    ChevronRight,
    Code,
    Copy,
    Cross,
    Eye,
    EyeOff,
    Fit,
    Gear,
    ListSide,
    Minus,
    Nodes,
    PaneSide,
    Pencil,
    Pin,
    Plan,
    Plus,
    Question,
    Refresh,
    Repair,
    Search,
    Send,
    Shield,
    Stop,
    Thinking,
    Tool,
    Trash,
    Undo,
    Warning,
}

/// Draws `icon` into the middle of `rect`, `side` points high.
pub fn paint(painter: &Painter, icon: Icon, rect: Rect, side: f32, colour: Color32) {
    let pen = Pen {
        painter,
        origin: rect.center() - vec2(side, side) / 2.0,
        scale: side / 16.0,
        stroke: Stroke::new((side / 16.0 * 1.4).max(1.0), colour),
    };
    pen.draw(icon);
}

struct Pen<'a> {
    painter: &'a Painter,
    origin: Pos2,
    scale: f32,
    stroke: Stroke,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> Pos2 {
        self.origin + vec2(x, y) * self.scale
    }

    fn line(&self, points: &[(f32, f32)]) {
        let points = points.iter().map(|(x, y)| self.at(*x, *y)).collect();
        self.painter.add(Shape::line(points, self.stroke));
    }

    fn closed(&self, points: &[(f32, f32)]) {
        let points = points.iter().map(|(x, y)| self.at(*x, *y)).collect();
        self.painter.add(Shape::closed_line(points, self.stroke));
    }

    fn solid(&self, points: &[(f32, f32)]) {
        let points = points.iter().map(|(x, y)| self.at(*x, *y)).collect();
        self.painter.add(Shape::convex_polygon(points, self.stroke.color, Stroke::NONE));
    }

    fn ring(&self, x: f32, y: f32, r: f32) {
        self.painter.circle_stroke(self.at(x, y), r * self.scale, self.stroke);
    }

    fn dot(&self, x: f32, y: f32, r: f32) {
        self.painter.circle_filled(self.at(x, y), r * self.scale, self.stroke.color);
    }

    fn frame(&self, x: f32, y: f32, w: f32, h: f32, r: f32) {
        let rect = Rect::from_min_size(self.at(x, y), vec2(w, h) * self.scale);
        self.painter.rect_stroke(rect, r * self.scale, self.stroke, StrokeKind::Middle);
    }

    /// Part of a circle; angles in turns, clockwise from the right.
    fn arc(&self, x: f32, y: f32, r: f32, from: f32, to: f32) {
        let points: Vec<_> = (0..=20)
            .map(|step| {
                let turn = (from + (to - from) * step as f32 / 20.0) * std::f32::consts::TAU;
                (x + r * turn.cos(), y + r * turn.sin())
            })
            .collect();
        self.line(&points);
    }

    fn draw(&self, icon: Icon) {
        match icon {
            Icon::Check => self.line(&[(3.0, 8.5), (6.5, 12.0), (13.0, 4.5)]),
            Icon::Cross => {
                self.line(&[(4.0, 4.0), (12.0, 12.0)]);
                self.line(&[(12.0, 4.0), (4.0, 12.0)]);
            }
            Icon::Plus => {
                self.line(&[(8.0, 3.0), (8.0, 13.0)]);
                self.line(&[(3.0, 8.0), (13.0, 8.0)]);
            }
            Icon::Minus => self.line(&[(3.0, 8.0), (13.0, 8.0)]),
            Icon::ChevronDown => self.line(&[(4.5, 6.5), (8.0, 10.0), (11.5, 6.5)]),
            Icon::ChevronRight => self.line(&[(6.5, 4.5), (10.0, 8.0), (6.5, 11.5)]),
            Icon::Code => {
                self.line(&[(5.5, 4.5), (2.0, 8.0), (5.5, 11.5)]);
                self.line(&[(10.5, 4.5), (14.0, 8.0), (10.5, 11.5)]);
            }
            Icon::Send => {
                self.line(&[(8.0, 13.5), (8.0, 3.0)]);
                self.line(&[(3.5, 7.5), (8.0, 3.0), (12.5, 7.5)]);
            }
            Icon::Stop => self.solid(&[(4.0, 4.0), (12.0, 4.0), (12.0, 12.0), (4.0, 12.0)]),
            Icon::Copy => {
                self.frame(5.5, 5.5, 8.0, 8.0, 1.5);
                self.line(&[(3.5, 10.5), (2.5, 10.5), (2.5, 2.5), (10.5, 2.5), (10.5, 3.5)]);
            }
            Icon::Search => {
                self.ring(7.0, 7.0, 4.2);
                self.line(&[(10.2, 10.2), (13.8, 13.8)]);
            }
            Icon::ListSide => {
                self.frame(2.0, 3.0, 12.0, 10.0, 1.5);
                self.line(&[(6.0, 3.0), (6.0, 13.0)]);
            }
            Icon::PaneSide => {
                self.frame(2.0, 3.0, 12.0, 10.0, 1.5);
                self.line(&[(9.0, 3.0), (9.0, 13.0)]);
            }
            Icon::Trash => {
                self.line(&[(2.5, 4.5), (13.5, 4.5)]);
                self.line(&[(6.0, 4.5), (6.0, 2.5), (10.0, 2.5), (10.0, 4.5)]);
                self.line(&[(4.0, 4.5), (4.7, 13.5), (11.3, 13.5), (12.0, 4.5)]);
            }
            Icon::Pencil => {
                self.closed(&[(3.0, 13.0), (3.8, 9.8), (10.8, 2.8), (13.2, 5.2), (6.2, 12.2)]);
                self.line(&[(9.0, 4.6), (11.4, 7.0)]);
            }
            Icon::Pin => {
                self.line(&[(5.0, 2.5), (11.0, 2.5)]);
                self.line(&[(6.2, 2.5), (5.8, 7.0), (4.0, 9.5), (12.0, 9.5), (10.2, 7.0), (9.8, 2.5)]);
                self.line(&[(8.0, 9.5), (8.0, 14.0)]);
            }
            Icon::Refresh => {
                self.arc(8.0, 8.0, 5.0, 0.05, 0.82);
                self.line(&[(10.6, 1.6), (10.6, 4.4), (13.4, 4.4)]);
            }
            Icon::Undo => {
                self.line(&[(6.0, 3.0), (2.8, 6.2), (6.0, 9.4)]);
                self.line(&[(2.8, 6.2), (9.5, 6.2)]);
                self.arc(9.5, 9.7, 3.5, -0.25, 0.25);
                self.line(&[(9.5, 13.2), (6.0, 13.2)]);
            }
            other => self.draw_picture(other),
        }
    }

    fn draw_picture(&self, icon: Icon) {
        match icon {
            Icon::Gear => {
                self.ring(8.0, 8.0, 2.2);
                self.ring(8.0, 8.0, 4.8);
                for step in 0..8 {
                    let turn = (step as f32 + 0.5) / 8.0 * std::f32::consts::TAU;
                    let (sin, cos) = turn.sin_cos();
                    self.line(&[(8.0 + 4.8 * cos, 8.0 + 4.8 * sin), (8.0 + 6.8 * cos, 8.0 + 6.8 * sin)]);
                }
            }
            Icon::Eye | Icon::EyeOff => {
                let lid = |sign: f32| {
                    let points: Vec<_> = (0..=12)
                        .map(|step| {
                            let x = step as f32 / 12.0;
                            (1.8 + 12.4 * x, 8.0 + sign * 4.0 * (x * std::f32::consts::PI).sin())
                        })
                        .collect();
                    self.line(&points);
                };
                lid(1.0);
                lid(-1.0);
                self.ring(8.0, 8.0, 1.9);
                if icon == Icon::EyeOff {
                    self.line(&[(3.0, 13.5), (13.0, 2.5)]);
                }
            }
            Icon::Fit => {
                self.line(&[(2.5, 6.0), (2.5, 2.5), (6.0, 2.5)]);
                self.line(&[(10.0, 2.5), (13.5, 2.5), (13.5, 6.0)]);
                self.line(&[(13.5, 10.0), (13.5, 13.5), (10.0, 13.5)]);
                self.line(&[(6.0, 13.5), (2.5, 13.5), (2.5, 10.0)]);
            }
            Icon::Camera => {
                self.frame(1.8, 4.5, 12.4, 8.7, 1.5);
                self.line(&[(5.5, 4.5), (6.5, 2.6), (9.5, 2.6), (10.5, 4.5)]);
                self.ring(8.0, 8.7, 2.5);
            }
            Icon::Book => {
                self.line(&[(8.0, 4.2), (8.0, 13.2)]);
                self.line(&[(8.0, 4.2), (6.5, 3.2), (2.0, 3.2), (2.0, 12.2), (6.5, 12.2), (8.0, 13.2)]);
                self.line(&[(8.0, 4.2), (9.5, 3.2), (14.0, 3.2), (14.0, 12.2), (9.5, 12.2), (8.0, 13.2)]);
            }
            Icon::Plan => {
                for y in [4.0, 8.0, 12.0] {
                    self.dot(3.0, y, 1.0);
                    self.line(&[(6.0, y), (13.5, y)]);
                }
            }
            Icon::Thinking => {
                for x in [3.5, 8.0, 12.5] {
                    self.dot(x, 8.0, 1.3);
                }
            }
            Icon::Tool => {
                self.closed(&[(3.2, 10.8), (8.2, 5.8), (10.2, 7.8), (5.2, 12.8)]);
                self.arc(10.8, 5.2, 3.0, 0.0, 0.72);
            }
            Icon::Nodes => {
                self.ring(8.0, 3.8, 1.8);
                self.ring(3.8, 12.0, 1.8);
                self.ring(12.2, 12.0, 1.8);
                self.line(&[(7.2, 5.4), (4.6, 10.4)]);
                self.line(&[(8.8, 5.4), (11.4, 10.4)]);
            }
            Icon::Repair => {
                self.arc(8.0, 8.0, 5.0, 0.55, 0.95);
                self.arc(8.0, 8.0, 5.0, 0.05, 0.45);
                self.line(&[(12.9, 3.0), (12.9, 6.4), (9.6, 6.4)]);
                self.line(&[(3.1, 13.0), (3.1, 9.6), (6.4, 9.6)]);
            }
            Icon::Shield => {
                let outline = [(8.0, 1.8), (13.2, 3.6), (13.0, 8.2), (11.2, 11.6), (8.0, 14.2)];
                self.line(&outline);
                self.line(&[(8.0, 1.8), (2.8, 3.6), (3.0, 8.2), (4.8, 11.6), (8.0, 14.2)]);
            }
            Icon::Warning => {
                self.closed(&[(8.0, 2.2), (14.4, 13.4), (1.6, 13.4)]);
                self.line(&[(8.0, 6.2), (8.0, 9.6)]);
                self.dot(8.0, 11.5, 0.8);
            }
            Icon::Question => {
                self.ring(8.0, 8.0, 6.2);
                self.arc(8.0, 6.4, 1.9, -0.5, 0.2);
                self.line(&[(8.6, 8.0), (8.0, 8.6), (8.0, 9.4)]);
                self.dot(8.0, 11.6, 0.8);
            }
            _ => {}
        }
    }
}
