//! Images as C describes them: how many pixels they have along each side, and how those lie in memory
//! of the host's.
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::{ur_image_desc_t, ur_mem_type_t};

/// More pixels along a side than any driver has; what it has is its own to say.
const LONGEST_SIDE: usize = 1 << 20;

/// # Errors
/// `INVALID_IMAGE_SIZE`; `INVALID_IMAGE_FORMAT_DESCRIPTOR` for an image that is none of the kinds.
pub(crate) fn sides(desc: &ur_image_desc_t) -> Result<[usize; 3]> {
    use ur_mem_type_t as T;
    let sides = match desc.r#type {
        T::IMAGE1D => [desc.width, 1, 1],
        T::IMAGE1D_ARRAY => [desc.width, desc.arraySize, 1],
        T::IMAGE2D => [desc.width, desc.height, 1],
        T::IMAGE2D_ARRAY => [desc.width, desc.height, desc.arraySize],
        T::IMAGE3D => [desc.width, desc.height, desc.depth],
        other => {
            return Err(Error::new(
                ErrorCode::InvalidImageFormatDescriptor,
                format!("there are no images of type {other:?}"),
            ));
        }
    };
    match sides.iter().all(|side| (1..=LONGEST_SIDE).contains(side)) {
        true => Ok(sides),
        false => Err(Error::new(
            ErrorCode::InvalidImageSize,
            format!("{sides:?} pixels: each side has 1 to {LONGEST_SIDE}"),
        )),
    }
}
/// Row pitch and slice pitch; where C leaves them 0 nothing is between the pixels.
///
/// # Errors
/// `INVALID_IMAGE_FORMAT_DESCRIPTOR` for pitches that do not fit.
pub(crate) fn pitches(
    desc: &ur_image_desc_t,
    sides: [usize; 3],
    pixel: usize,
) -> Result<[usize; 2]> {
    let refused = |why: String| Err(Error::new(ErrorCode::InvalidImageFormatDescriptor, why));
    let width = sides[0] * pixel; // of 2^20 pixels at most
    let row = if desc.rowPitch == 0 { width } else { desc.rowPitch };
    if row < width || !row.is_multiple_of(pixel) {
        return refused(format!(
            "a row pitch of {row} is not a multiple of the {pixel} bytes of a pixel that holds a \
             row of {width}"
        ));
    }
    let height = if desc.r#type == ur_mem_type_t::IMAGE1D_ARRAY { 1 } else { sides[1] };
    let Some(rows) = row.checked_mul(height) else {
        return refused(format!("{height} rows, {row} bytes apart, are no memory there can be"));
    };
    let slice = if desc.slicePitch == 0 { rows } else { desc.slicePitch };
    if slice < rows || !slice.is_multiple_of(row) {
        return refused(format!(
            "a slice pitch of {slice} is not a multiple of the row pitch {row} that holds {height} \
             rows"
        ));
    }
    Ok([row, slice])
}
