//! The way of events from the engine to its one surface.

use std::sync::{Arc, OnceLock};

use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::types::Event;

/// Events that may wait for a surface that draws seldom (a minimised window). Beyond this the engine waits.
const CAPACITY: usize = 65_536;

type Waker = Box<dyn Fn() + Send + Sync>;

/// Sends events and wakes the surface. Cheap to clone.
#[derive(Clone)]
pub struct EventSender {
    sender: mpsc::Sender<Event>,
    waker: Arc<OnceLock<Waker>>,
    order: Arc<Mutex<()>>,
}

impl EventSender {
    /// A sender and the surface's end.
    pub fn new() -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        (Self { sender, waker: Arc::default(), order: Arc::default() }, receiver)
    }

    /// Called after each event, so that a window that sleeps draws again. The first registration holds.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        if self.waker.set(Box::new(waker)).is_err() {
            tracing::warn!("a second surface wanted to be woken; there can be one only");
        }
    }

    /// Held by whoever stores and tells a fact, and by whoever reads the history and tells it: so that the two come in
    /// one order.
    pub async fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().await
    }

    /// Sends one event. A surface that is gone needs none: the facts are stored.
    pub async fn send(&self, event: Event) {
        if self.sender.send(event).await.is_ok()
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
    }
}
