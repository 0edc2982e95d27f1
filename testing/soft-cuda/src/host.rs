//! Host memory: allocated by the driver, or registered by the caller.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{INVALID_VALUE, NOT_REGISTERED, REGISTERED},
    context, memory,
    ranges::{self, Range, What},
    raw::put,
};

entries! {
    fn cuMemHostAlloc(to: *mut u64, bytes: usize, flags: u32) {
        let context = context::current()?;
        if flags > 7 {
            return Err(INVALID_VALUE);
        }
        put(to, 0)?;
        put(to, memory::host(&context, bytes, What::Host, flags)?)
    }
    fn cuMemFreeHost(at: u64) {
        context::current()?;
        if at == 0 { Ok(()) } else { memory::free(at, &[What::Host]) }
    }
    fn cuMemHostRegister_v2(at: u64, bytes: usize, flags: u32) {
        let context = context::current()?;
        let (bytes, end) = (bytes as u64, at.checked_add(bytes as u64).ok_or(INVALID_VALUE)?);
        if at == 0 || bytes == 0 || flags & !0b1011 != 0 || end > 1 << 47 {
            return Err(INVALID_VALUE);
        }
        let mut table = ranges::change();
        if table.within(at, bytes).next().is_some() {
            return Err(REGISTERED);
        }
        // The real driver pins pages, which must be mapped.
        let pages = (at & !4095, end.next_multiple_of(4096));
        mapped(pages.0, pages.1 - pages.0)?;
        let range = Range::new(What::Registered, at, bytes, context.device);
        table.insert(Range { context: context.id, extra: u64::from(flags), ..range });
        Ok(())
    }
    fn cuMemHostUnregister(at: u64) {
        context::current()?;
        let mut table = ranges::change();
        table.exact(at).filter(|r| r.what == What::Registered).ok_or(NOT_REGISTERED)?;
        table.remove(at);
        Ok(())
    }
    fn cuMemHostGetDevicePointer_v2(to: *mut u64, at: u64, flags: u32) {
        context::current()?;
        let table = ranges::table();
        let known = table.find(at).is_some_and(|r| matches!(r.what, What::Host | What::Registered));
        if flags != 0 || !known {
            return Err(INVALID_VALUE);
        }
        put(to, at)
    }
}
/// Checks that the whole range is mapped.
fn mapped(at: u64, bytes: u64) -> crate::code::Answer {
    // SAFETY: `msync` only checks that the pages are mapped and flushes them.
    let asked =
        unsafe { libc::msync(crate::space::reach(at).cast(), bytes as usize, libc::MS_ASYNC) };
    if asked == 0 { Ok(()) } else { Err(INVALID_VALUE) }
}
