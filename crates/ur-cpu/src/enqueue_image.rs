//! Copies of pixels: as copies of boxes of bytes. Where the pixels of an image are is `image.rs`'s to say.
use super::{Mem, engine::Work, image::place, mem::Placed, native::Planes};
use std::{any::Any, sync::Arc};
use ur_adapter::{
    error::{ErrorCode, Result},
    object::Borrowed,
};
use ur_core::{command::Pixels, memory::pictures::Part};
use ur_hal::Address;

/// What has to be done. The bytes of the images stay where they are until it is.
///
/// # Errors
/// `INVALID_SIZE`, `INVALID_MEM_OBJECT`
pub(super) fn work(pixels: &Pixels<'_, Mem>) -> Result<Work> {
    let inside = |of: &Borrowed<'_, Mem>, part: Part| {
        let image = of.image()?;
        let bytes = [part.region[0] * image.pixel(), part.region[1], part.region[2]];
        Ok::<_, ur_adapter::error::Error>((place(image, of.address(), part)?, bytes))
    };
    let keeping = |work, of: &Borrowed<'_, Mem>| {
        let kept: Arc<dyn Any + Send + Sync> = of.storage().clone();
        Work::Keeping(Box::new(work), kept)
    };
    match pixels {
        Pixels::Host { image: of, part, host, writes } => {
            let (inside, bytes) = inside(of, *part)?;
            let [row, slice] = host.pitches;
            let base = Address::new(host.at).ok_or(ErrorCode::InvalidSize)?;
            let pitch = if of.image()?.is_1d_array() { slice } else { row };
            let outside = Planes { base, pitch, slice };
            let (to, from) = if *writes { (inside, outside) } else { (outside, inside) };
            Ok(keeping(Work::of_box(to, from, bytes), of))
        }
        Pixels::Copy { from: (from, here), to: (to, there) } => {
            let ((out, bytes), (into, _)) = (inside(from, *here)?, inside(to, *there)?);
            Ok(keeping(keeping(Work::of_box(into, out, bytes), from), to))
        }
    }
}
