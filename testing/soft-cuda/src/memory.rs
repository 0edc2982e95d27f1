//! Memory from `cuMemAlloc`, managed memory, and the release of any memory.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    backing::{Backing, Kind},
    code::{Answer, INVALID_DEVICE, INVALID_VALUE, OUT_OF_MEMORY},
    context::{self, Context},
    device, pool,
    ranges::{self, Range, What},
    raw::{put, put_maybe},
    space::{self, GRANULE},
    stream,
};
use std::sync::{Arc, Mutex};
use ur_lock::locked;

/// A page of the device that several small allocations share, as with the real driver.
struct Page {
    base: u64,
    backing: Arc<Backing>,
    context: u64,
    device: i32,
    used: u64,
    live: usize,
}
static PAGES: Mutex<Vec<Page>> = Mutex::new(Vec::new());
/// The alignment of allocations.
const ALIGNMENT: u64 = 512;

fn small(context: u64, device: i32, bytes: u64) -> Answer<(u64, u64, Arc<Backing>)> {
    let taken = bytes.next_multiple_of(ALIGNMENT);
    let mut pages = locked(&PAGES);
    let fits =
        |p: &&mut Page| p.context == context && p.device == device && p.used + taken <= GRANULE;
    if let Some(page) = pages.iter_mut().rev().find(fits) {
        let at = page.base + page.used;
        page.used += taken;
        page.live += 1;
        return Ok((at, page.base, page.backing.clone()));
    }
    let (base, backing) = large(device, GRANULE)?;
    pages.push(Page { base, backing: backing.clone(), context, device, used: taken, live: 1 });
    Ok((base, base, backing))
}
fn large(device: i32, bytes: u64) -> Answer<(u64, Arc<Backing>)> {
    let bytes = bytes.checked_next_multiple_of(GRANULE).ok_or(OUT_OF_MEMORY)?;
    let backing = Backing::new(Kind::Linear, device, bytes, true)?;
    let base = space::take(bytes, GRANULE, 0)?;
    backing.map(base).inspect_err(|_| space::give(base))?;
    Ok((base, Arc::new(backing)))
}
/// Allocates device memory for the use `what`.
pub fn alloc(context: &Context, bytes: u64, what: What) -> Answer<u64> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let device = context.device;
    let (at, page, backing) = if bytes <= GRANULE / 2 {
        small(context.id, device, bytes)?
    } else {
        large(device, bytes).map(|(at, backing)| (at, at, backing))?
    };
    let range = Range::new(what, at, bytes, device);
    let range = Range { context: context.id, backing: Some(backing), extra: page, ..range };
    ranges::change().insert(range);
    Ok(at)
}
/// Undoes [`alloc`] after the range was removed from the table.
fn give_back(range: &Range) {
    let mut pages = locked(&PAGES);
    if let Some(i) = pages.iter().position(|p| p.base == range.extra) {
        pages[i].live -= 1;
        if pages[i].live != 0 {
            return;
        }
        pages.remove(i);
    }
    let bytes = range.backing.as_ref().map_or(0, |b| b.bytes);
    space::unmap(range.extra, bytes);
    space::give(range.extra);
}
/// Releases the memory of a range that was removed from the table.
pub fn gone(range: &Range) {
    match range.what {
        What::Linear | What::Global => give_back(range),
        What::Managed | What::Host => {
            space::host_free(range.base, range.bytes.next_multiple_of(4096))
        }
        What::Pooled => pool::gone(range),
        What::Opened => crate::ipc::gone(range),
        What::Registered | What::Virtual => {}
    }
}
/// Releases all memory of a context that was destroyed.
pub fn end_of(context: u64) {
    let theirs = ranges::table().of_context(context);
    for range in theirs {
        let removed = ranges::change().remove(range.base);
        removed.iter().for_each(|r| gone(r));
    }
}
/// Frees a whole range of one of these kinds after waiting for the context to be idle, as the real driver
/// does.
pub fn free(at: u64, kinds: &[What]) -> Answer {
    let context = context::current()?;
    let found = ranges::table().exact(at).filter(|r| kinds.contains(&r.what)).cloned();
    let range = found
        .filter(|r| !r.leaving.load(std::sync::atomic::Ordering::Acquire))
        .ok_or(INVALID_VALUE)?;
    context.synchronize()?;
    if range.context != 0 && range.context != context.id {
        context::of(range.context)?.synchronize()?;
    }
    let removed = ranges::change().remove(at).ok_or(INVALID_VALUE)?;
    gone(&removed);
    Ok(())
}
/// Allocates memory that the host can access too.
pub fn host(context: &Context, bytes: usize, what: What, flags: u32) -> Answer<u64> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let rounded = (bytes as u64).checked_next_multiple_of(4096).ok_or(OUT_OF_MEMORY)?;
    let base = space::host(rounded)?;
    let range = Range::new(what, base, bytes as u64, context.device);
    ranges::change().insert(Range { context: context.id, extra: u64::from(flags), ..range });
    Ok(base)
}
/// Checks that the whole range is managed memory.
fn managed(at: u64, bytes: usize) -> Answer {
    let table = ranges::table();
    let range = table.find(at).filter(|r| r.what == What::Managed).ok_or(INVALID_VALUE)?;
    let fits = bytes != 0 && at.checked_add(bytes as u64).is_some_and(|end| end <= range.end());
    if fits { Ok(()) } else { Err(INVALID_VALUE) }
}
/// Checks that it is the ordinal of a device, or -1 for the host.
fn place(device: i32) -> Answer {
    if device == -1 { Ok(()) } else { device::of(device).map(drop).map_err(|_| INVALID_DEVICE) }
}

entries! {
    fn cuMemAlloc_v2(to: *mut u64, bytes: usize) {
        let context = context::current()?;
        put(to, 0)?;
        put(to, alloc(&context, bytes as u64, What::Linear)?)
    }
    fn cuMemFree_v2(at: u64) {
        context::current()?;
        if at == 0 { Ok(()) } else { free(at, &[What::Linear, What::Managed, What::Pooled]) }
    }
    fn cuMemAllocManaged(to: *mut u64, bytes: usize, flags: u32) {
        let context = context::current()?;
        if flags != 1 && flags != 2 {
            return Err(INVALID_VALUE);
        }
        put(to, 0)?;
        put(to, host(&context, bytes, What::Managed, flags)?)
    }
    fn cuMemPrefetchAsync(at: u64, bytes: usize, device: i32, stream: u64) {
        let stream = stream::of(stream)?;
        managed(at, bytes)?;
        place(device)?;
        stream.submit(move || managed(at, bytes))?;
        Ok(())
    }
    fn cuMemAdvise(at: u64, bytes: usize, advice: i32, device: i32) {
        context::current()?;
        managed(at, bytes)?;
        match advice {
            1 | 2 | 4 => Ok(()), // the device does not matter
            3 | 5 | 6 => place(device),
            _ => Err(INVALID_VALUE),
        }
    }
    fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, at: u64) {
        context::current()?;
        let table = ranges::table();
        let range = table.find(at).filter(|r| r.what != What::Registered).ok_or(crate::code::NOT_FOUND)?;
        put_maybe(base, range.base);
        put_maybe(bytes, range.bytes as usize);
        Ok(())
    }
}
