//! Pixels of images, as commands on them are told.
use crate::memory::pictures::{OnHost, Part};
use ur_adapter::object::Borrowed;

/// Pixels to copy.
#[derive(Debug)]
pub enum Pixels<'a, M: 'static> {
    /// Between an image and host memory.
    Host {
        /// The image.
        image: Borrowed<'a, M>,
        /// Which of its pixels.
        part: Part,
        /// Where they are in memory.
        host: OnHost,
        /// Whether they are written into the image.
        writes: bool,
    },
    /// From an image to one of the same format.
    Copy {
        /// What is read.
        from: (Borrowed<'a, M>, Part),
        /// What is written.
        to: (Borrowed<'a, M>, Part),
    },
}
