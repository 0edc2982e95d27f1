//! Copies of pixels: between the driver's images, and memory. Where the pixels are is `image.rs`'s to say.
use super::{
    Mem, Queue,
    image::{self, region},
    native::list::List,
};
use ur_adapter::error::Result;
use ur_core::{command::Pixels, memory::pictures::Part};

/// Appends what has to be done to a list.
///
/// # Errors
/// `UNSUPPORTED_FEATURE` for a device that does not reach the image; the driver's own.
pub(super) fn append(queue: &Queue, list: &List<'_>, pixels: &Pixels<'_, Mem>) -> Result<()> {
    match pixels {
        Pixels::Host { image: of, part, host, writes } => {
            let inside = (of.image()?, of.storage().pixels(queue.device())?);
            match writes {
                true => image::write(list, inside, *part, *host),
                false => image::read(list, inside, *part, *host),
            }
        }
        Pixels::Copy { from: (from, here), to: (to, there) } => {
            let out = from.storage().pixels(queue.device())?;
            let into = to.storage().pixels(queue.device())?;
            if from.image()?.is_1d_array() == to.image()?.is_1d_array() {
                return into.copy(list, region(*there), out, region(*here));
            }
            // Layers to one are rows to the other.
            let [width, rows, slices] = here.region;
            (0..slices).flat_map(|z| (0..rows).map(move |y| (y, z))).try_for_each(|(y, z)| {
                let row = |part: &Part| {
                    let origin = [part.origin[0], part.origin[1] + y, part.origin[2] + z];
                    region(Part { origin, region: [width, 1, 1] })
                };
                into.copy(list, row(there), out, row(here))
            })
        }
    }
}
