//! Whether the memory that a call touches is inside its allocation or its buffer, by what the adapter
//! says of them. Memory that the adapter does not know (the host's own) is not judged.
#![expect(unsafe_code, reason = "asks the adapter")]
use super::{
    effect::{Act, Kind, Row, Span},
    operands::Operands,
};
use crate::direct;
use std::ffi::c_void;
use ur_sys::*;

/// Says what is touched that should not be.
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
        }
    }
    Ok(())
}
/// How much there is from an address to its allocation's end, where the adapter says it.
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

/// The context that the call's queue or command buffer is in, or that is named.
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
    let none = std::ptr::null_mut();
    let result = if let Some(queue) = of(Kind::Queue) {
        let ask = ur_queue_info_t::CONTEXT;
        // SAFETY: the handle is the caller's; there is room for the answer.
        unsafe { direct::queue_get_info(ur_queue_handle_t(queue), ask, size, to, none) }
    } else {
        return None;
    };
    (result == ur_result_t::SUCCESS && !context.is_null()).then_some(context)
}
/// Where the allocation that holds `at` begins, and its size.
fn allocation(context: ur_context_handle_t, at: usize) -> Option<(usize, usize)> {
    let ask = |name, to: *mut c_void, size| {
        // SAFETY: the context is the adapter's; there is room for the answer; addresses are only
        // compared.
        let result = unsafe {
            let none = std::ptr::null_mut();
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
/// The size of a buffer.
fn buffer(handle: usize) -> Option<usize> {
    if handle == 0 {
        return None;
    }
    let mut length = 0usize;
    let (to, size, none) = ((&raw mut length).cast(), size_of::<usize>(), std::ptr::null_mut());
    let mem = ur_mem_handle_t(handle as *mut c_void);
    // SAFETY: the handle is the caller's; there is room for the answer.
    let result = unsafe { direct::mem_get_info(mem, ur_mem_info_t::SIZE, size, to, none) };
    (result == ur_result_t::SUCCESS).then_some(length)
}
