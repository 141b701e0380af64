//! Pictures from disk as textures. Reading and decoding happen on a thread of their own; the window shows a placeholder
//! until then. Only the most recently shown pictures are kept.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use egui::{ColorImage, Context, TextureHandle, TextureOptions};

/// Pictures kept in graphics memory at once.
const KEPT: usize = 24;
/// Longest side in pixels; a larger picture is scaled down, because graphics drivers have a limit.
const LONGEST: u32 = 4096;

/// A picture on its way to the screen.
#[derive(Clone)]
pub enum Picture {
    Loading,
    Ready(TextureHandle),
    /// What went wrong, for the person.
    Failed(String),
}

type Decoded = (String, Result<ColorImage, String>);

/// The pictures by path.
pub struct Pictures {
    slots: HashMap<String, (u64, Picture)>,
    clock: u64,
    wanted: Sender<String>,
    decoded: Receiver<Decoded>,
}

impl Pictures {
    /// Starts the thread; it ends when this value is dropped.
    pub fn new(context: Context) -> Self {
        let (wanted, requests) = channel::<String>();
        let (results, decoded) = channel();
        let work = move || {
            for path in requests {
                let image = load(Path::new(&path));
                if results.send((path, image)).is_err() {
                    return;
                }
                context.request_repaint();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("pictures".into()).spawn(work) {
            // Without the thread nobody receives, and each picture reports that it cannot be loaded.
            tracing::warn!(%error, "cannot start the thread that reads pictures");
        }
        Self { slots: HashMap::new(), clock: 0, wanted, decoded }
    }

    /// Takes in what was decoded since the last frame.
    pub fn receive(&mut self, context: &Context) {
        while let Ok((path, image)) = self.decoded.try_recv() {
            if let Some((_, slot)) = self.slots.get_mut(&path) {
                *slot = match image {
                    Ok(image) => Picture::Ready(context.load_texture(path.clone(), image, TextureOptions::LINEAR)),
                    Err(why) => Picture::Failed(why),
                };
            }
        }
    }

    /// The picture at `path`; starts to load it when it is new.
    pub fn get(&mut self, path: &str) -> Picture {
        self.clock += 1;
        if let Some((used, picture)) = self.slots.get_mut(path) {
            *used = self.clock;
            return picture.clone();
        }
        let picture = match self.wanted.send(path.to_owned()) {
            Ok(()) => Picture::Loading,
            Err(_) => Picture::Failed("Pictures cannot be loaded. Restart the program.".into()),
        };
        self.slots.insert(path.to_owned(), (self.clock, picture.clone()));
        self.drop_oldest();
        picture
    }

    /// Is a picture still on its way?
    pub fn loading(&self) -> bool {
        self.slots.values().any(|(_, picture)| matches!(picture, Picture::Loading))
    }

    /// Forgets all pictures, for example because another conversation is shown.
    pub fn forget(&mut self) {
        self.slots.clear();
    }

    fn drop_oldest(&mut self) {
        if self.slots.len() <= KEPT {
            return;
        }
        let oldest = self.slots.iter().min_by_key(|(_, (used, _))| *used).map(|(path, _)| path.clone());
        if let Some(path) = oldest {
            self.slots.remove(&path);
        }
    }
}

fn load(path: &Path) -> Result<ColorImage, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("The picture cannot be read: {error}."))?;
    let image = image::load_from_memory(&bytes).map_err(|error| format!("The picture cannot be shown: {error}."))?;
    let image = if image.width().max(image.height()) > LONGEST {
        image.resize(LONGEST, LONGEST, image::imageops::FilterType::Triangle)
    } else {
        image
    };
    let pixels = image.to_rgba8();
    let size = [pixels.width() as usize, pixels.height() as usize];
    Ok(ColorImage::from_rgba_unmultiplied(size, pixels.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(pictures: &mut Pictures, context: &Context) {
        for _ in 0..200 {
            pictures.receive(context);
            if !pictures.loading() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("the picture did not arrive");
    }

    #[test]
    fn a_picture_arrives_and_a_bad_one_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = folder.path().join("good.png");
        image::RgbaImage::from_pixel(4, 3, image::Rgba([9, 9, 9, 255])).save(&good).expect("a picture");
        let bad = folder.path().join("bad.png");
        std::fs::write(&bad, "no picture").expect("a file");
        let context = Context::default();
        let mut pictures = Pictures::new(context.clone());
        let (good, bad) = (good.display().to_string(), bad.display().to_string());
        assert!(matches!(pictures.get(&good), Picture::Loading));
        assert!(matches!(pictures.get(&bad), Picture::Loading));
        wait(&mut pictures, &context);
        let Picture::Ready(texture) = pictures.get(&good) else { panic!("the good picture is ready") };
        assert_eq!(texture.size(), [4, 3]);
        let Picture::Failed(why) = pictures.get(&bad) else { panic!("the bad picture failed") };
        assert!(why.starts_with("The picture cannot be shown"), "{why}");
    }

    #[test]
    fn only_some_pictures_are_kept() {
        let mut pictures = Pictures::new(Context::default());
        for number in 0..KEPT + 10 {
            pictures.get(&format!("/nowhere/{number}.png"));
        }
        assert_eq!(pictures.slots.len(), KEPT);
        assert!(pictures.slots.contains_key(&format!("/nowhere/{}.png", KEPT + 9)), "the newest stays");
    }
}
