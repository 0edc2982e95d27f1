//! Buffers, sub-buffers and images.
use crate::{
    ask,
    bench::Bench,
    case::{Case, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "memory";
        "urMemBufferCreate, urMemGetInfo", "UR_MEM_INFO_SIZE and _CONTEXT", "a buffer says its size and its context", facts;
        "urMemBufferCreate", "a buffer holds what is written", "buffers of every size and access hold what is written", holds;
        "urMemBufferCreate", "UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER", "a buffer begins with a copy of the host's bytes", copied;
        "urMemBufferCreate", "UR_MEM_FLAG_USE_HOST_POINTER", "a buffer over the host's memory begins with its bytes", used;
        "urMemBufferPartition", "a part shows its buffer's bytes", "a part and its buffer show each other's bytes", part;
        "urMemBufferPartition", "UR_RESULT_ERROR_INVALID_BUFFER_SIZE: the region ends past the end of the buffer's allocation", "a part that runs past its buffer is INVALID_BUFFER_SIZE", part_past;
        "urMemBufferPartition", "a part has no parts", "a part of a part is refused", part_of_part;
        "urMemRelease", "a part keeps its buffer", "a part holds its bytes after its buffer was released", part_outlives;
        "urMemRelease", "commands keep what they use", "a buffer may be released while a command waits to write it", released_at_work;
        "urMemRelease", "a buffer keeps its context", "a buffer answers after its context was released", outlives_context;
        "urMemImageCreate, urMemImageGetInfo", "an image has what its descriptor says", "an image says its format, size and pitches", image_facts;
        "urMemImageCreate", "UR_RESULT_ERROR_UNSUPPORTED_FEATURE: the device reports no image support", "images are refused exactly where the device says it has none", no_images;
        "urEnqueueMemImageWrite, urEnqueueMemImageRead", "an image holds what is written", "a whole image and a part of it are written and read", image_holds;
        "urEnqueueMemImageCopy", "a part of an image goes to another", "a rectangle is copied and nothing beside it", image_copy;
        "urMemGetNativeHandle, urMemBufferCreateWithNativeHandle", "a native handle leads back", "a buffer made of a native handle shows the bytes", native;
        "urMemGetNativeHandle, urMemBufferCreateWithNativeHandle", "a native handle leads back", "a buffer made of a part's native handle shows the part's bytes", native_part;
    }
}
const READ_WRITE: ur_mem_flags_t = ur_mem_flags_t::READ_WRITE;

fn release(b: &Bench, mem: ur_mem_handle_t) -> Verdict {
    must!(b, mem.release(mem));
    Ok(())
}
pub fn write(b: &Bench, to: ur_mem_handle_t, offset: usize, bytes: &[u8]) -> Verdict {
    let (queue, from, n) = (b.queue()?, bytes.as_ptr().cast(), bytes.len());
    let none = null_mut();
    must!(b, enqueue.mem_buffer_write(queue, to, true, offset, n, from, 0, null(), none));
    Ok(())
}
pub fn read(b: &Bench, of: ur_mem_handle_t, offset: usize, n: usize) -> Verdict<Vec<u8>> {
    let (queue, mut bytes, none) = (b.queue()?, vec![0; n], null_mut());
    let to = bytes.as_mut_ptr().cast();
    must!(b, enqueue.mem_buffer_read(queue, of, true, offset, n, to, 0, null(), none));
    Ok(bytes)
}
/// Maps the first bytes of a buffer and returns the address.
pub fn mapped(b: &Bench, buffer: ur_mem_handle_t) -> Verdict<*mut c_void> {
    let (queue, flags, none, mut at) = (b.queue()?, ur_map_flags_t::READ, null_mut(), null_mut());
    must!(b, enqueue.mem_buffer_map(queue, buffer, true, flags, 0, 64, 0, null(), none, &mut at));
    Ok(at)
}
fn facts(b: &Bench) -> Verdict {
    let buffer = b.new_buffer(READ_WRITE, 5000)?;
    let size = info!(b, mem.get_info(buffer, ur_mem_info_t::SIZE), usize);
    ensure!((5000..5000 + 4096).contains(&size), "a buffer of 5,000 bytes has {size}");
    let context = info!(b, mem.get_info(buffer, ur_mem_info_t::CONTEXT), usize);
    same!(context, b.context()?.0.addr(), "the context");
    release(b, buffer)
}
fn holds(b: &Bench) -> Verdict {
    for flags in [READ_WRITE, ur_mem_flags_t::READ_ONLY, ur_mem_flags_t::WRITE_ONLY] {
        for bytes in [1, 100, 65_537, 1 << 20] {
            let buffer = b.new_buffer(flags, bytes)?;
            let there: Vec<_> = (0..bytes).map(|n| (n % 251) as u8).collect();
            write(b, buffer, 0, &there)?;
            ensure!(read(b, buffer, 0, bytes)? == there, "{bytes} bytes of {flags:?} changed");
            release(b, buffer)?;
        }
    }
    Ok(())
}
fn over(b: &Bench, flag: ur_mem_flags_t, host: &mut [u8]) -> Verdict<ur_mem_handle_t> {
    let stype = ur_structure_type_t::BUFFER_PROPERTIES;
    let at = host.as_mut_ptr().cast();
    let properties = ur_buffer_properties_t { stype, pNext: null_mut(), pHost: at };
    let (context, mut buffer) = (b.context()?, ur_mem_handle_t::NULL);
    let flags = READ_WRITE | flag;
    must!(b, mem.buffer_create(context, flags, host.len(), &properties, &mut buffer));
    Ok(buffer)
}
fn copied(b: &Bench) -> Verdict {
    let mut host = vec![6_u8; 4096];
    let buffer = over(b, ur_mem_flags_t::ALLOC_COPY_HOST_POINTER, &mut host)?;
    host.fill(7);
    same!(read(b, buffer, 0, 4096)?, vec![6; 4096], "the copy");
    release(b, buffer)
}
fn used(b: &Bench) -> Verdict {
    let mut host = vec![8_u8; 4096];
    let buffer = over(b, ur_mem_flags_t::USE_HOST_POINTER, &mut host)?;
    same!(read(b, buffer, 0, 4096)?, vec![8; 4096], "what it begins with");
    write(b, buffer, 10, &[1, 2, 3])?;
    same!(read(b, buffer, 10, 3)?, [1, 2, 3], "what was written");
    release(b, buffer)
}
fn part_code(
    b: &Bench,
    of: ur_mem_handle_t,
    origin: usize,
    size: usize,
) -> Verdict<(ur_result_t, ur_mem_handle_t)> {
    let stype = ur_structure_type_t::BUFFER_REGION;
    let region = ur_buffer_region_t { stype, pNext: null(), origin, size };
    let (kind, mut part) = (ur_buffer_create_type_t::REGION, ur_mem_handle_t::NULL);
    Ok((ask!(b, mem.buffer_partition(of, READ_WRITE, kind, &region, &mut part)), part))
}
fn part_of(b: &Bench, of: ur_mem_handle_t, origin: usize, size: usize) -> Verdict<ur_mem_handle_t> {
    let (code, part) = part_code(b, of, origin, size)?;
    b.succeeded("urMemBufferPartition", code)?;
    Ok(part)
}
/// A sub-buffer with the first half of the bench's buffer.
pub fn half(b: &Bench) -> Verdict<ur_mem_handle_t> {
    part_of(b, ur_mem_handle_t(b.object("Mem")?), 0, 32_768)
}
fn part(b: &Bench) -> Verdict {
    let buffer = b.new_buffer(READ_WRITE, 65_536)?;
    write(b, buffer, 0, &[1; 65_536])?;
    let part = part_of(b, buffer, 4096, 8192)?;
    let size = info!(b, mem.get_info(part, ur_mem_info_t::SIZE), usize);
    same!(size, 8192, "the size of the part");
    write(b, part, 100, &[2; 50])?;
    same!(read(b, buffer, 4196, 50)?, vec![2; 50], "the part's bytes in the buffer");
    write(b, buffer, 4096, &[3; 10])?;
    same!(read(b, part, 0, 10)?, vec![3; 10], "the buffer's bytes in the part");
    same!(read(b, buffer, 4246, 50)?, vec![1; 50], "what is beside");
    release(b, part)?;
    release(b, buffer)
}
fn part_past(b: &Bench) -> Verdict {
    let buffer = b.new_buffer(READ_WRITE, 8192)?;
    for (origin, size) in [(0, 8193), (4096, 4097), (8192, 1), (usize::MAX - 4095, 4096)] {
        let (code, part) = part_code(b, buffer, origin, size)?;
        b.was_refused("urMemBufferPartition", code, ur_result_t::ERROR_INVALID_BUFFER_SIZE)?;
        ensure!(part.is_null(), "the result is written to");
    }
    release(b, buffer)
}
fn part_of_part(b: &Bench) -> Verdict {
    let buffer = b.new_buffer(READ_WRITE, 65_536)?;
    let part = part_of(b, buffer, 0, 8192)?;
    let (code, none) = part_code(b, part, 0, 4096)?;
    ensure!(code != ur_result_t::SUCCESS && none.is_null(), "{code:?}, and it is {none:?}");
    release(b, part)?;
    release(b, buffer)
}
fn part_outlives(b: &Bench) -> Verdict {
    let buffer = b.new_buffer(READ_WRITE, 65_536)?;
    write(b, buffer, 0, &[5; 65_536])?;
    let part = part_of(b, buffer, 4096, 4096)?;
    release(b, buffer)?;
    same!(read(b, part, 0, 4096)?, vec![5; 4096], "the part");
    release(b, part)
}
fn released_at_work(b: &Bench) -> Verdict {
    let (queue, buffer) = (b.queue()?, b.new_buffer(READ_WRITE, 65_536)?);
    let gate = b.gate(queue)?;
    let (byte, mut event) = (1_u8, ur_event_handle_t::NULL);
    let pattern = (&raw const byte).cast();
    must!(b, enqueue.mem_buffer_fill(queue, buffer, pattern, 1, 0, 65_536, 0, null(), &mut event));
    release(b, buffer)?;
    gate.open();
    b.wait(&[event.0])?;
    must!(b, event.release(event));
    Ok(())
}
fn outlives_context(b: &Bench) -> Verdict {
    let (context, mut buffer) = (b.new_context()?, ur_mem_handle_t::NULL);
    must!(b, mem.buffer_create(context, READ_WRITE, 4096, null(), &mut buffer));
    must!(b, context.release(context));
    let found = info!(b, mem.get_info(buffer, ur_mem_info_t::CONTEXT), usize);
    same!(found, context.0.addr(), "the context");
    release(b, buffer)
}
fn image_facts(b: &Bench) -> Verdict {
    use ur_image_info_t as Info;
    let image = b.new_image(READ_WRITE, 20, 10)?;
    let format = info!(b, mem.image_get_info(image, Info::FORMAT), [u32; 2]);
    let expected = [ur_image_channel_order_t::RGBA.0, ur_image_channel_type_t::UNSIGNED_INT8.0];
    same!(format, expected, "the format");
    for (name, expected) in [(Info::WIDTH, 20), (Info::HEIGHT, 10), (Info::ELEMENT_SIZE, 4)] {
        let found = info!(b, mem.image_get_info(image, name), usize);
        same!(found, expected, "{name:?}");
    }
    let pitch = info!(b, mem.image_get_info(image, Info::ROW_PITCH), usize);
    ensure!(pitch >= 80, "20 pixels of 4 bytes at a pitch of {pitch}");
    release(b, image)
}
fn no_images(b: &Bench) -> Verdict {
    let device = b.device()?;
    let has = info!(b, device.get_info(device, ur_device_info_t::IMAGE_SUPPORT), u8) != 0;
    if has {
        let image = b.new_image(READ_WRITE, 16, 16)?;
        return release(b, image);
    }
    let desc = ur_image_desc_t {
        stype: ur_structure_type_t::IMAGE_DESC,
        pNext: null(),
        r#type: ur_mem_type_t::IMAGE2D,
        width: 16,
        height: 16,
        depth: 1,
        arraySize: 1,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    };
    let format = ur_image_format_t {
        channelOrder: ur_image_channel_order_t::RGBA,
        channelType: ur_image_channel_type_t::UNSIGNED_INT8,
    };
    let (context, mut image) = (b.context()?, ur_mem_handle_t::NULL);
    refused!(
        b,
        ERROR_UNSUPPORTED_FEATURE,
        mem.image_create(context, READ_WRITE, &format, &desc, null_mut(), &mut image)
    );
    Ok(())
}
const WHOLE: ur_rect_region_t = ur_rect_region_t { width: 16, height: 16, depth: 1 };
const ORIGIN: ur_rect_offset_t = ur_rect_offset_t { x: 0, y: 0, z: 0 };

fn write_image(b: &Bench, image: ur_mem_handle_t, bytes: &mut [u8]) -> Verdict {
    let (queue, from, none): (_, *mut c_void, _) =
        (b.queue()?, bytes.as_mut_ptr().cast(), null_mut());
    must!(
        b,
        enqueue.mem_image_write(queue, image, true, ORIGIN, WHOLE, 0, 0, from, 0, null(), none)
    );
    Ok(())
}
fn read_image(
    b: &Bench,
    image: ur_mem_handle_t,
    origin: ur_rect_offset_t,
    region: ur_rect_region_t,
) -> Verdict<Vec<u8>> {
    let mut bytes = vec![0_u8; usize::try_from(4 * region.width * region.height).unwrap_or(0)];
    let (queue, to, none) = (b.queue()?, bytes.as_mut_ptr().cast(), null_mut());
    must!(b, enqueue.mem_image_read(queue, image, true, origin, region, 0, 0, to, 0, null(), none));
    Ok(bytes)
}
fn image_holds(b: &Bench) -> Verdict {
    let image = b.new_image(READ_WRITE, 16, 16)?;
    let mut there: Vec<_> = (0..16 * 16 * 4).map(|n| (n % 253) as u8).collect();
    write_image(b, image, &mut there)?;
    same!(read_image(b, image, ORIGIN, WHOLE)?, there, "the whole image");
    let (origin, region) =
        (ur_rect_offset_t { x: 3, y: 2, z: 0 }, ur_rect_region_t { width: 5, height: 4, depth: 1 });
    let expected: Vec<u8> =
        (2..6).flat_map(|y| there[(y * 16 + 3) * 4..(y * 16 + 8) * 4].to_vec()).collect();
    same!(read_image(b, image, origin, region)?, expected, "a part of the image");
    release(b, image)
}
fn image_copy(b: &Bench) -> Verdict {
    let (one, two) = (b.new_image(READ_WRITE, 16, 16)?, b.new_image(READ_WRITE, 16, 16)?);
    write_image(b, one, &mut [9; 1024])?;
    write_image(b, two, &mut [1; 1024])?;
    let (from, to) = (ur_rect_offset_t { x: 1, y: 1, z: 0 }, ur_rect_offset_t { x: 4, y: 5, z: 0 });
    let region = ur_rect_region_t { width: 3, height: 2, depth: 1 };
    let (queue, none) = (b.queue()?, null_mut());
    must!(b, enqueue.mem_image_copy(queue, one, two, from, to, region, 0, null(), none));
    b.finish(queue)?;
    let read = read_image(b, two, ORIGIN, WHOLE)?;
    for (index, byte) in read.iter().enumerate() {
        let (x, y) = (index / 4 % 16, index / 64);
        let is_in = (4..7).contains(&x) && (5..7).contains(&y);
        same!(*byte, if is_in { 9 } else { 1 }, "a byte of the pixel at {x}, {y}");
    }
    release(b, one)?;
    release(b, two)
}
fn native(b: &Bench) -> Verdict {
    let (context, device) = (b.context()?, b.device()?);
    let (buffer, mut native, mut again) =
        (b.new_buffer(READ_WRITE, 4096)?, 0, ur_mem_handle_t::NULL);
    must!(b, mem.get_native_handle(buffer, device, &mut native));
    must!(b, mem.buffer_create_with_native_handle(native, context, null(), &mut again));
    crate::bench::exists(again.0)?;
    release(b, again)?;
    release(b, buffer)
}
fn native_part(b: &Bench) -> Verdict {
    let (context, device) = (b.context()?, b.device()?);
    let buffer = b.new_buffer(READ_WRITE, 65_536)?;
    write(b, buffer, 0, &[1; 65_536])?;
    let part = part_of(b, buffer, 4096, 8192)?;
    write(b, part, 0, &[2; 8192])?;
    let (mut native, mut again) = (0, ur_mem_handle_t::NULL);
    must!(b, mem.get_native_handle(part, device, &mut native));
    must!(b, mem.buffer_create_with_native_handle(native, context, null(), &mut again));
    let size = info!(b, mem.get_info(again, ur_mem_info_t::SIZE), usize);
    ensure!(size >= 8192, "what was made of the part has {size} bytes"); // an address has no size of its own
    same!(read(b, again, 0, 8192)?, vec![2; 8192], "its bytes");
    write(b, again, 100, &[3; 50])?;
    same!(read(b, buffer, 4196, 50)?, vec![3; 50], "what was written there, in the buffer");
    release(b, again)?;
    release(b, part)?;
    release(b, buffer)
}
