//! Copies of pixels: between arrays of the driver's, and memory. Where the pixels are is `image.rs`'s to say.
use super::{
    Mem, Queue,
    driver::Dialect,
    image,
    native::{array::Array, stream::Stream},
    storage::Found,
};
use ur_adapter::error::{ErrorCode, Result};
use ur_core::command::Pixels;

/// The array of an image on the queue's device, up to date in `stream`.
fn array<'m, D: Dialect>(
    queue: &Queue<D>,
    stream: &Stream<D>,
    image: &'m Mem<D>,
    writes: bool,
) -> Result<&'m Array<D>> {
    match image.storage().at(queue.device(), stream, writes)? {
        Found::Array(array) => Ok(array),
        Found::At(_) => Err(ErrorCode::InvalidMemObject.into()), // no image has an address
    }
}

/// Puts what has to be done into a stream.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn put<D: Dialect>(
    queue: &Queue<D>,
    stream: &Stream<D>,
    pixels: &Pixels<'_, Mem<D>>,
) -> Result<()> {
    match pixels {
        Pixels::Host { image: of, part, host, writes } => {
            let inside = (of.image()?, array(queue, stream, of, *writes)?);
            match writes {
                true => image::write(stream, inside, *part, *host),
                false => image::read(stream, inside, *part, *host),
            }
        }
        Pixels::Copy { from: (from, here), to: (to, there) } => {
            let out = (from.image()?, array(queue, stream, from, false)?, here.origin);
            let into = (to.image()?, array(queue, stream, to, true)?, there.origin);
            image::copy(stream, out, into, here.region)
        }
    }
}
