//! Checks that the memory which a call touches lies inside its allocation or buffer, as the adapter's queries
//! describe them. Memory that the adapter does not know, such as ordinary host memory, is not checked.
#![expect(unsafe_code, reason = "asks the adapter")]
use super::{
    effect::{Act, Kind, Row, Span},
    operands::Operands,
};
use crate::direct;
use std::{ffi::c_void, ptr::null_mut};
use ur_sys::*;

/// Checks each span of the call; the error says which memory is out of bounds.
pub fn check(row: &Row, operands: Operands<'_>) -> Result<(), String> {
    for span in row.spans {
        match span {
            Span::Usm { param, size } => {
                let Some(context) = context(row, operands) else { continue };
                let at = operands.word(*param);
                let Some((base, length)) = allocation(context, at) else { continue };
                let (offset, size) = (at.wrapping_sub(base), operands.size(size));
                inside(row, *param, (offset, size, length), "allocation")?;
            }
            Span::Buffer { param, from, size } => {
                let Some(length) = buffer(operands.word(*param)) else { continue };
                let (offset, size) = (operands.word(*from), operands.size(size));
                inside(row, *param, (offset, size, length), "buffer")?;
            }
            Span::Rect { param, block: (from, block), pitches: (rows, slices) } => {
                let (from, block) = (operands.block(*from), operands.block(*block));
                let pitches = [*rows, *slices].map(|pitch| operands.word(pitch));
                let Some((offset, size)) = run(from, block, pitches) else { continue };
                let Some(length) = buffer(operands.word(*param)) else { continue };
                inside(row, *param, (offset, size, length), "buffer")?;
            }
            Span::Image { param, block: (from, block) } => {
                let (from, block) = (operands.block(*from), operands.block(*block));
                let Some(image) = image(operands.word(*param)) else { continue };
                let end = [0, 1, 2].map(|i| from[i].saturating_add(block[i]));
                if (0..3).any(|i| end[i] > image[i]) {
                    return Err(format!(
                        "{} touches {block:?} pixels from {from:?} on of an image of {image:?}; make the image larger or the command smaller",
                        row.call.params[*param].name
                    ));
                }
            }
        }
    }
    Ok(())
}
/// Returns the number of bytes from an address to the end of its allocation, if the adapter knows it.
pub fn left(row: &Row, operands: Operands<'_>, at: usize) -> Option<usize> {
    let (base, length) = allocation(context(row, operands)?, at)?;
    length.checked_sub(at.wrapping_sub(base))
}
fn inside(
    row: &Row,
    param: usize,
    (offset, size, length): (usize, usize, usize),
    what: &str,
) -> Result<(), String> {
    match offset.checked_add(size) {
        Some(end) if end <= length => Ok(()),
        _ => Err(format!(
            "{} touches {size} bytes at offset {offset} of an {what} of {length} bytes; make the {what} larger or the command smaller",
            row.call.params[param].name
        )
        .replace("an buffer", "a buffer")),
    }
}

/// Returns the context that is an argument of the call, or that of its queue.
fn context(row: &Row, operands: Operands<'_>) -> Option<ur_context_handle_t> {
    let of = |kind: Kind| {
        let effect = row.effects.iter().find(|e| e.kind == kind && e.act == Act::Use)?;
        let handle = operands.word(effect.param) as *mut c_void;
        (!handle.is_null()).then_some(handle)
    };
    if let Some(context) = of(Kind::Context) {
        return Some(ur_context_handle_t(context));
    }
    let mut context = ur_context_handle_t::NULL;
    let (to, size) = ((&raw mut context).cast(), size_of_val(&context));
    let none = null_mut();
    let result = if let Some(queue) = of(Kind::Queue) {
        let ask = ur_queue_info_t::CONTEXT;
        // SAFETY: the caller promises a valid handle; `to` has space for the answer.
        unsafe { direct::queue_get_info(ur_queue_handle_t(queue), ask, size, to, none) }
    } else {
        return None;
    };
    (result == ur_result_t::SUCCESS && !context.is_null()).then_some(context)
}
/// Returns the base address and size of the allocation that holds `at`.
fn allocation(context: ur_context_handle_t, at: usize) -> Option<(usize, usize)> {
    let ask = |name, to: *mut c_void, size| {
        // SAFETY: the context is the adapter's; there is space for the answer; the adapter does not access
        // memory at the address.
        let result = unsafe {
            let none = null_mut();
            direct::usm_get_mem_alloc_info(context, at as *const c_void, name, size, to, none)
        };
        result == ur_result_t::SUCCESS
    };
    let mut kind = ur_usm_type_t::UNKNOWN;
    let mut found = [0usize; 2];
    let known = ask(ur_usm_alloc_info_t::TYPE, (&raw mut kind).cast(), size_of_val(&kind))
        && kind != ur_usm_type_t::UNKNOWN
        && ask(ur_usm_alloc_info_t::BASE_PTR, (&raw mut found[0]).cast(), size_of::<usize>())
        && ask(ur_usm_alloc_info_t::SIZE, (&raw mut found[1]).cast(), size_of::<usize>());
    (known && found[0] != 0).then_some((found[0], found[1]))
}
/// Returns the offset of a block's first byte and the number of bytes up to and including its last.
fn run(from: [u64; 3], block: [u64; 3], [rows, slices]: [usize; 2]) -> Option<(usize, usize)> {
    let [from, block] =
        [from, block].map(|of| of.map(|n| usize::try_from(n).unwrap_or(usize::MAX)));
    let rows = if rows == 0 { block[0] } else { rows };
    let slices = if slices == 0 { rows.saturating_mul(block[1]) } else { slices };
    let at = |[x, y, z]: [usize; 3]| {
        let rows = rows.saturating_mul(y).saturating_add(x);
        slices.saturating_mul(z).saturating_add(rows)
    };
    // An extent of 0 in any direction means that nothing is touched.
    let [x, y, z] = block.map(|n| n.checked_sub(1));
    Some((at(from), at([x?, y?, z?]).saturating_add(1)))
}
/// Returns the size of a buffer.
fn buffer(handle: usize) -> Option<usize> {
    answer(handle, |mem, size, to| {
        // SAFETY: the caller promises a valid handle; there is space for the answer.
        unsafe { direct::mem_get_info(mem, ur_mem_info_t::SIZE, size, to, null_mut()) }
    })
}
/// Returns the width, height and depth of an image. The images of an array follow each other in the first
/// dimension that a single image does not use.
fn image(handle: usize) -> Option<[u64; 3]> {
    use ur_image_info_t as Info;
    let ask = |name| {
        let number = answer(handle, |mem, size, to| {
            // SAFETY: as in `buffer`.
            unsafe { direct::mem_image_get_info(mem, name, size, to, null_mut()) }
        })?;
        u64::try_from(number).ok()
    };
    let [width, height, depth] = [ask(Info::WIDTH)?, ask(Info::HEIGHT)?, ask(Info::DEPTH)?];
    let all = ask(Info::ARRAY_SIZE).unwrap_or(1).max(1);
    // An image of height 1 may belong to an array of 1D or of 2D images, because the type cannot be queried;
    // both are allowed.
    Some([width, if height > 1 { height } else { all }, depth.max(all)])
}
/// Queries a number of a memory object; `None` if the adapter returns an error.
fn answer(
    handle: usize,
    ask: impl FnOnce(ur_mem_handle_t, usize, *mut c_void) -> ur_result_t,
) -> Option<usize> {
    if handle == 0 {
        return None;
    }
    let mut number = 0usize;
    let mem = ur_mem_handle_t(handle as *mut c_void);
    let result = ask(mem, size_of::<usize>(), (&raw mut number).cast());
    (result == ur_result_t::SUCCESS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_runs_from_its_first_byte_to_the_end_of_its_last_row() {
        assert_eq!(run([1, 0, 0], [4, 1, 1], [0, 0]), Some((1, 4)));
        // Rows and slices without gaps.
        assert_eq!(run([0, 0, 0], [4, 3, 2], [0, 0]), Some((0, 24)));
        // With gaps between rows or slices, whose bytes are not touched.
        assert_eq!(run([2, 1, 0], [4, 3, 1], [16, 0]), Some((18, 36)));
        assert_eq!(run([0, 0, 1], [4, 3, 2], [16, 64]), Some((64, 64 + 36)));
    }
    #[test]
    fn a_block_without_size_touches_nothing_and_one_without_end_all() {
        assert_eq!(run([9, 9, 9], [4, 0, 1], [0, 0]), None);
        let (_, size) = run([0, 0, 0], [u64::MAX; 3], [0, 0]).unwrap();
        assert_eq!(size, usize::MAX);
    }
}
