//! Queries of pointers.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{Answer, INVALID_VALUE},
    context,
    ranges::{self, Range, What},
    raw::put,
};
use std::{
    ffi::c_void,
    sync::{Arc, atomic::Ordering},
};

fn tell(range: &Range, attribute: i32, at: u64, to: *mut c_void) -> Answer {
    let host = range.is_host();
    let device = range.device;
    match attribute {
        1 if range.context == 0 => put(to.cast(), context::primary(device)),
        1 => put(to.cast(), range.context),
        2 => put(
            to.cast(),
            if matches!(range.what, What::Host | What::Registered) { 1_u32 } else { 2 },
        ),
        3 => put(to.cast(), at),
        4 if host => put(to.cast(), at),
        6 | 13 => put(to.cast(), u32::from(attribute == 13)),
        7 | 20 => put(to.cast(), range.id),
        8 => put(to.cast(), u32::from(range.what == What::Managed)),
        9 => put(to.cast(), device),
        10 => put(to.cast(), u32::from(range.what == What::Linear)),
        11 => put(to.cast(), range.base),
        12 => put(to.cast(), range.bytes),
        14 if range.what == What::Virtual => put(to.cast(), range.extra >> 63),
        14 => put(to.cast(), 0_u64),
        15 => put(to.cast(), 0_u32),
        16 => {
            let current = context::current()?.device;
            let bits = range.access.load(Ordering::Acquire) >> (2 * current) & 3;
            // Driver 580 reports this for memory of pools, regardless of the pool's access.
            put(to.cast(), if host || range.what == What::Pooled { 3 } else { bits })
        }
        17 => put(to.cast(), if range.what == What::Pooled { range.extra } else { 0 }),
        18 => put(to.cast(), range.bytes),
        19 => put(to.cast(), range.base),
        _ => Err(INVALID_VALUE),
    }
}
/// Returns the range, unless its release is pending: then the driver reports nothing about it, though its
/// stream may still use it.
fn known(at: u64) -> Option<Arc<Range>> {
    ranges::table().find(at).filter(|r| !r.leaving.load(Ordering::Acquire)).cloned()
}
entries! {
    fn cuPointerGetAttribute(to: *mut c_void, attribute: i32, at: u64) {
        context::current()?;
        let range = known(at).ok_or(INVALID_VALUE)?;
        tell(&range, attribute, at, to)
    }
    fn cuPointerGetAttributes(count: u32, attributes: *const i32, to: *const *mut c_void, at: u64) {
        context::current()?;
        let range = known(at);
        for i in 0..count as usize {
            let attribute = crate::raw::get(attributes.wrapping_add(i))?;
            let to = crate::raw::get(to.wrapping_add(i))?;
            match &range {
                Some(range) => {
                    // Attributes that do not apply are zero here instead of an error.
                    let _untold = tell(range, attribute, at, to);
                }
                None => put(to.cast(), 0_u32)?,
            }
        }
        Ok(())
    }
}
