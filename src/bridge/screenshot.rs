//! Takes pictures of Slicer.
//!
//! Slicer's own picture routes leave out what matters (a slice picture without segments, markups and crosshair) and
//! some move the person's camera, so pictures are taken by Python of ours, `capture.py`. It travels as a JSON literal
//! and becomes a module of its own in Slicer, named by its content, so that no character in it can break out, nothing of
//! it stays in the namespace that all requests share, and two versions of the bridge do not use each other's. To compile
//! it takes longer than to call it, so it is sent only when Slicer says that it is missing. Each request carries an id
//! that the reply must repeat, because replies can be swapped when code that runs in Slicer lets requests overtake each
//! other. Slicer sends PNG; joining views, bounding the size, flattening on white and JPEG are done here, off Slicer's
//! main thread.

use std::io::Cursor;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::{self, FilterType};
use image::{ImageFormat, Rgba, RgbaImage};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::types::{CaptureArgs, CaptureReply, MAX_IMAGE_SIZE};
use super::web_server::{WebServer, WebServerError};

/// The code that runs in Slicer.
const CAPTURE: &str = include_str!("capture.py");
/// The name of its module in Slicer.
static MODULE: LazyLock<String> = LazyLock::new(|| {
    let digest: String = Sha256::digest(CAPTURE).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("_slicer_ai_agent_capture_{digest}")
});
const JPEG_QUALITY: u8 = 85;
/// Space between the views of a joined picture, in pixels.
const GAP: u32 = 4;

/// What is said of a slice picture that Slicer's route gave.
const VOLUMES_ONLY: &str = "\"Slicer API exec\" is off in Slicer, so this shows the volumes only: segments, marks, \
    crosshair and texts are missing.";

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// An argument is not one of its values.
    #[error("{0}")]
    Argument(String),
    /// Slicer could not be asked.
    #[error(transparent)]
    Slicer(#[from] WebServerError),
    /// Slicer could not take the picture; the text is for people.
    #[error("{0}")]
    NoPicture(String),
    /// What came is not a picture.
    #[error("the picture that Slicer sent cannot be read: {0}")]
    BadPicture(String),
}

/// A finished picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The file's bytes, JPEG or PNG.
    pub bytes: Vec<u8>,
    /// What is said beside it.
    pub about: CaptureReply,
}

/// The arguments after they were checked.
#[derive(Debug, Clone, PartialEq)]
struct Request {
    view_type: String,
    view_name: Option<String>,
    slice_offset: Option<f64>,
    slice_orientation: Option<&'static str>,
    camera_axis: Option<char>,
    longest_side: u32,
    png: bool,
}

#[derive(Debug, Deserialize)]
struct Reply {
    id: String,
    ok: bool,
    /// The module is not in this Slicer; send it.
    #[serde(default)]
    missing: bool,
    #[serde(default)]
    error: String,
    #[serde(default)]
    pictures: Vec<RawPicture>,
    #[serde(default)]
    notes: Vec<String>,
}

/// What Slicer sent.
#[derive(Debug, Default)]
struct Taken {
    pictures: Vec<RawPicture>,
    notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct RawPicture {
    name: String,
    /// A PNG file in base64.
    png: String,
}

/// `capture_screenshot`.
///
/// # Errors
/// [`CaptureError`]; every text is made to be shown.
pub async fn capture(slicer: &WebServer, args: &CaptureArgs) -> Result<Picture, CaptureError> {
    let request = check(args)?;
    let raw = match ask(slicer, &request).await {
        // The picture may be asked for again without harm, and the one that overtook us is through.
        Err(CaptureError::Slicer(WebServerError::Swapped)) => ask(slicer, &request).await?,
        Err(CaptureError::Slicer(WebServerError::ExecOff)) => from_route(slicer, &request).await?,
        other => other?,
    };
    let finished = tokio::task::spawn_blocking(move || finish(&request, &raw)).await;
    finished.map_err(|error| CaptureError::BadPicture(error.to_string()))?
}

/// Checks and normalises the arguments.
fn check(args: &CaptureArgs) -> Result<Request, CaptureError> {
    let wrong = |what: &str, given: &str, allowed: &str| {
        CaptureError::Argument(format!("{what} is {given:?}; it can be {allowed}."))
    };
    let view_type = args.view_type.to_lowercase();
    if !["application", "slice", "3d"].contains(&view_type.as_str()) {
        return Err(wrong("view_type", &args.view_type, "application, slice or 3d"));
    }
    let slice_orientation = match given(&args.slice_orientation) {
        None => None,
        Some(name) => Some(match name.to_lowercase().as_str() {
            "axial" => "Axial",
            "sagittal" => "Sagittal",
            "coronal" => "Coronal",
            _ => {
                return Err(wrong("slice_orientation", name, "axial, sagittal or coronal"));
            }
        }),
    };
    let camera_axis = match given(&args.camera_axis) {
        None => None,
        Some(name) => {
            let first = name.chars().next().map(|letter| letter.to_ascii_uppercase());
            let known = first.filter(|letter| "LRAPIS".contains(*letter));
            Some(known.ok_or_else(|| wrong("camera_axis", name, "L, R, A, P, I or S"))?)
        }
    };
    let png = match given(&args.format).unwrap_or("jpeg").to_lowercase().as_str() {
        "jpeg" | "jpg" => false,
        "png" => true,
        other => return Err(wrong("format", other, "jpeg or png")),
    };
    // Some clients send 0 for an argument that they leave out.
    let longest_side = args.image_size.filter(|size| *size > 0).unwrap_or(MAX_IMAGE_SIZE);
    if longest_side < 16 {
        return Err(CaptureError::Argument(format!(
            "image_size is {longest_side}; it is the longest side in pixels, from 16 to {MAX_IMAGE_SIZE}."
        )));
    }
    Ok(Request {
        view_type,
        view_name: given(&args.view_name).map(str::to_owned),
        slice_offset: args.slice_offset,
        slice_orientation,
        camera_axis,
        longest_side: longest_side.min(MAX_IMAGE_SIZE),
        png,
    })
}

fn given(value: &Option<String>) -> Option<&str> {
    value.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// One line of Python that asks the module, or says that it is missing; it leaves nothing behind but its result.
fn code(request: &Request, id: &str) -> String {
    let module = &*MODULE;
    format!(
        "__execResult = (lambda own, asked: own.answer(asked) if own else {{\"id\": asked[\"id\"], \"ok\": False, \
         \"missing\": True}})(__import__(\"sys\").modules.get(\"{module}\"), {})",
        asked(request, id)
    )
}

/// One line of Python that makes the module and asks it.
fn installing_code(request: &Request, id: &str) -> String {
    let module = &*MODULE;
    // A JSON string is a Python string, so no text in it can become code.
    let source = Value::String(CAPTURE.to_owned());
    format!(
        "__execResult = (lambda own, asked: (__import__(\"builtins\").exec({source}, own.__dict__), \
         __import__(\"sys\").modules.__setitem__(own.__name__, own), own.answer(asked))[-1])\
         (__import__(\"types\").ModuleType(\"{module}\"), {})",
        asked(request, id)
    )
}

/// The request as a Python expression.
fn asked(request: &Request, id: &str) -> String {
    let asked = json!({
        "id": id,
        "view_type": request.view_type,
        "view_name": request.view_name,
        "slice_offset": request.slice_offset,
        "slice_orientation": request.slice_orientation,
        "camera_axis": request.camera_axis,
    });
    format!("__import__(\"json\").loads({})", Value::String(asked.to_string()))
}

async fn ask(slicer: &WebServer, request: &Request) -> Result<Taken, CaptureError> {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let mut reply = send(slicer, &code(request, &id), &id).await?;
    if reply.missing {
        reply = send(slicer, &installing_code(request, &id), &id).await?;
    }
    if !reply.ok {
        return Err(CaptureError::NoPicture(reply.error));
    }
    Ok(Taken { pictures: reply.pictures, notes: reply.notes })
}

/// What Slicer's own routes can give when it takes no code, as long as they change nothing of the person's views.
async fn from_route(slicer: &WebServer, request: &Request) -> Result<Taken, CaptureError> {
    let as_it_is =
        request.slice_offset.is_none() && request.slice_orientation.is_none() && request.camera_axis.is_none();
    let wanted = request.view_name.as_deref().unwrap_or_default().to_lowercase();
    let (target, name, note) = match (request.view_type.as_str(), wanted.as_str()) {
        ("application", _) => ("/screenshot", "main window", None),
        ("3d", "" | "1") if as_it_is => ("/threeD", "3D view 1", None),
        ("slice", "" | "red") if as_it_is => ("/slice?view=red", "Red", Some(VOLUMES_ONLY)),
        ("slice", "yellow") if as_it_is => ("/slice?view=yellow", "Yellow", Some(VOLUMES_ONLY)),
        ("slice", "green") if as_it_is => ("/slice?view=green", "Green", Some(VOLUMES_ONLY)),
        _ => return Err(WebServerError::ExecOff.into()),
    };
    let png = BASE64.encode(slicer.picture(target).await?);
    let pictures = vec![RawPicture { name: name.to_owned(), png }];
    Ok(Taken { pictures, notes: note.map(str::to_owned).into_iter().collect() })
}

async fn send(slicer: &WebServer, code: &str, id: &str) -> Result<Reply, WebServerError> {
    let value = slicer.exec(code, None).await?;
    // Any reply that is not of this request is another one's: the module always answers with the id.
    let reply: Reply = serde_json::from_value(value).map_err(|_| WebServerError::Swapped)?;
    if reply.id == id { Ok(reply) } else { Err(WebServerError::Swapped) }
}

/// Decodes, joins, bounds and encodes.
fn finish(request: &Request, taken: &Taken) -> Result<Picture, CaptureError> {
    let bad = |error: String| CaptureError::BadPicture(error);
    let mut decoded = Vec::with_capacity(taken.pictures.len());
    for picture in &taken.pictures {
        let bytes = BASE64.decode(&picture.png).map_err(|e| bad(e.to_string()))?;
        let image = image::load_from_memory_with_format(&bytes, ImageFormat::Png).map_err(|e| bad(e.to_string()))?;
        decoded.push(flattened(image.into_rgba8()));
    }
    let joined = joined(decoded).ok_or_else(|| bad("there is none".to_owned()))?;
    let image = image::DynamicImage::ImageRgba8(bounded(joined, request.longest_side)).into_rgb8();
    let mut bytes = Vec::new();
    let written = if request.png {
        image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
    } else {
        image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))
    };
    written.map_err(|e| bad(e.to_string()))?;
    Ok(Picture {
        about: CaptureReply {
            view_type: request.view_type.clone(),
            views: taken.pictures.iter().map(|picture| picture.name.clone()).collect(),
            width: image.width(),
            height: image.height(),
            mime_type: if request.png { "image/png" } else { "image/jpeg" }.to_owned(),
            note: (!taken.notes.is_empty()).then(|| taken.notes.join(" ")),
        },
        bytes,
    })
}

/// Opaque, on white.
fn flattened(mut image: RgbaImage) -> RgbaImage {
    for Rgba([red, green, blue, alpha]) in image.pixels_mut() {
        let cover = u16::from(*alpha);
        for channel in [red, green, blue] {
            let mixed = (u16::from(*channel) * cover + 255 * (255 - cover)) / 255;
            *channel = u8::try_from(mixed).unwrap_or(u8::MAX);
        }
        *alpha = 255;
    }
    image
}

/// Several views as one picture, two a row; a single one stays as it is.
fn joined(mut images: Vec<RgbaImage>) -> Option<RgbaImage> {
    if images.len() < 2 {
        return images.pop();
    }
    let width = images.iter().map(RgbaImage::width).max()?;
    let height = images.iter().map(RgbaImage::height).max()?;
    let rows = u32::try_from(images.len().div_ceil(2)).ok()?;
    let mut canvas =
        RgbaImage::from_pixel(2 * width + GAP, rows * height + (rows - 1) * GAP, Rgba([128, 128, 128, 255]));
    for (index, image) in (0_u32..).zip(&images) {
        let x = (index % 2) * (width + GAP);
        let y = (index / 2) * (height + GAP);
        imageops::replace(&mut canvas, image, i64::from(x), i64::from(y));
    }
    Some(canvas)
}

/// Made smaller until its longer side fits.
fn bounded(image: RgbaImage, longest_side: u32) -> RgbaImage {
    let (width, height) = image.dimensions();
    let longer = width.max(height);
    if longer <= longest_side {
        return image;
    }
    let scaled = |side: u32| {
        let exact = f64::from(side) * f64::from(longest_side) / f64::from(longer);
        (exact.round() as u32).max(1)
    };
    imageops::resize(&image, scaled(width), scaled(height), FilterType::CatmullRom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, pixel: [u8; 4]) -> RawPicture {
        let mut bytes = Vec::new();
        RgbaImage::from_pixel(width, height, Rgba(pixel))
            .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
            .unwrap();
        RawPicture { name: "Red".to_owned(), png: BASE64.encode(bytes) }
    }

    fn taken(pictures: impl Into<Vec<RawPicture>>) -> Taken {
        Taken { pictures: pictures.into(), notes: Vec::new() }
    }

    fn request(args: CaptureArgs) -> Request {
        check(&args).unwrap()
    }

    #[test]
    fn a_picture_is_bounded_on_its_longer_side_and_never_enlarged() {
        for (size, given, expected) in [
            (Some(100), (400, 200), (100, 50)),
            (Some(100), (200, 400), (50, 100)),
            (Some(1000), (400, 200), (400, 200)),
            (None, (3840, 216), (1920, 108)),
            (Some(5000), (3840, 20), (1920, 10)),
            (Some(0), (3840, 20), (1920, 10)),
        ] {
            let request = request(CaptureArgs { image_size: size, ..CaptureArgs::default() });
            let about = finish(&request, &taken([png(given.0, given.1, [9, 9, 9, 255])])).unwrap().about;
            assert_eq!((about.width, about.height), expected);
        }
    }

    #[test]
    fn what_is_transparent_becomes_white_in_both_formats() {
        for format in ["jpeg", "png"] {
            let request = request(CaptureArgs { format: Some(format.to_owned()), ..CaptureArgs::default() });
            let picture = finish(&request, &taken([png(8, 8, [0, 0, 0, 0])])).unwrap();
            let image = image::load_from_memory(&picture.bytes).unwrap();
            assert_eq!(image.color(), image::ColorType::Rgb8);
            assert!(image.into_rgb8().pixels().all(|p| p.0.iter().all(|c| *c >= 254)), "{format}");
            assert_eq!(picture.about.mime_type, format!("image/{format}"));
        }
    }

    #[test]
    fn several_views_come_as_one_picture_with_what_slicer_notes() {
        let request = request(CaptureArgs::default());
        let views =
            taken([png(40, 30, [255, 0, 0, 255]), png(40, 30, [0, 255, 0, 255]), png(20, 10, [0, 0, 255, 255])]);
        let views = Taken { notes: vec!["No main window.".into(), "Green was never drawn.".into()], ..views };
        let picture = finish(&request, &views).unwrap();
        assert_eq!((picture.about.width, picture.about.height), (84, 64));
        assert_eq!(picture.about.note.unwrap(), "No main window. Green was never drawn.");
        let image = image::load_from_memory(&picture.bytes).unwrap().into_rgb8();
        assert!(image.get_pixel(60, 10).0[1] > 200, "the second view is at the right");
    }

    #[test]
    fn wrong_arguments_are_named_with_what_is_possible() {
        for (args, word) in [
            (CaptureArgs { view_type: "zzz".into(), ..CaptureArgs::default() }, "application, slice or 3d"),
            (CaptureArgs { camera_axis: Some("Q".into()), ..CaptureArgs::default() }, "L, R, A, P, I or S"),
            (CaptureArgs { slice_orientation: Some("oblique".into()), ..CaptureArgs::default() }, "sagittal"),
            (CaptureArgs { image_size: Some(15), ..CaptureArgs::default() }, "1920"),
            (CaptureArgs { format: Some("gif".into()), ..CaptureArgs::default() }, "jpeg or png"),
        ] {
            let text = check(&args).unwrap_err().to_string();
            assert!(text.contains(word), "{text}");
        }
    }

    #[test]
    fn words_for_sides_are_understood() {
        let request = request(CaptureArgs { camera_axis: Some(" anterior".into()), ..CaptureArgs::default() });
        assert_eq!(request.camera_axis, Some('A'));
    }

    #[test]
    fn no_view_name_can_become_code() {
        let name = "Red\"}')\n\\\"); import os #";
        let request = request(CaptureArgs { view_name: Some(name.into()), ..CaptureArgs::default() });
        for sent in [code(&request, "7"), installing_code(&request, "7")] {
            assert_eq!(sent.lines().count(), 1, "a line break would end the literal");
            let literal = sent.split(".loads(").nth(1).unwrap().strip_suffix("))").unwrap();
            let text: String = serde_json::from_str(literal).unwrap();
            let back: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back["view_name"], name);
        }
    }
}
