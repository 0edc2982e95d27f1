//! Images and samplers, as a C program has them: formats, sides and pitches, what they tell, reads,
//! writes and copies of boxes of pixels, and what is refused.
mod common;
use common::{mems::*, ur::*};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_image_channel_order_t as O;
use ur_image_channel_type_t as C;
use ur_image_info_t as I;
use ur_mem_flags_t as F;
use ur_mem_type_t as T;
use ur_result_t as R;

const RGBA: ur_image_format_t =
    ur_image_format_t { channelOrder: O::RGBA, channelType: C::UNSIGNED_INT8 };
const NO_EVENT: *mut ur_event_handle_t = null_mut();

fn desc(kind: T, [width, height, depth, layers]: [usize; 4]) -> ur_image_desc_t {
    ur_image_desc_t {
        stype: ur_structure_type_t::IMAGE_DESC,
        pNext: null(),
        r#type: kind,
        width,
        height,
        depth,
        arraySize: layers,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    }
}
fn image(
    mems: &Mems,
    flags: F,
    format: ur_image_format_t,
    desc: ur_image_desc_t,
    host: *mut c_void,
) -> Outcome<ur_mem_handle_t> {
    let (context, mut mem) = (mems.ur.context, ur_mem_handle_t::NULL);
    mems.ur.check(call!(mem.image_create(context, flags, &format, &desc, host, &mut mem)))?;
    Ok(mem)
}
fn holding(mems: &Mems, desc: ur_image_desc_t, bytes: &[u8]) -> ur_mem_handle_t {
    let host = bytes.as_ptr().cast_mut().cast();
    image(mems, F::ALLOC_COPY_HOST_POINTER, RGBA, desc, host).expect("an image")
}
fn info<V: Copy + Default>(mems: &Mems, mem: ur_mem_handle_t, name: I) -> Outcome<V> {
    mems.ur.value(|size, to, ret| call!(mem.image_get_info(mem, name, size, to, ret)))
}
/// Reads pixels; pitches of 0 mean dense memory.
fn read(
    mems: &Mems,
    mem: ur_mem_handle_t,
    [origin, region]: [[u64; 3]; 2],
    [row, slice]: [usize; 2],
    to: &mut [u8],
) -> Outcome<()> {
    let (queue, to) = (mems.queue, to.as_mut_ptr().cast());
    let (origin, region) = (at(origin), of(region));
    mems.ur.check(call!(enqueue.mem_image_read(
        queue,
        mem,
        true,
        origin,
        region,
        row,
        slice,
        to,
        0,
        null(),
        NO_EVENT
    )))
}
fn write(
    mems: &Mems,
    mem: ur_mem_handle_t,
    [origin, region]: [[u64; 3]; 2],
    [row, slice]: [usize; 2],
    from: &[u8],
) -> Outcome<()> {
    let (queue, from) = (mems.queue, from.as_ptr().cast_mut().cast());
    let (origin, region) = (at(origin), of(region));
    mems.ur.check(call!(enqueue.mem_image_write(
        queue,
        mem,
        true,
        origin,
        region,
        row,
        slice,
        from,
        0,
        null(),
        NO_EVENT
    )))
}
fn copy(
    mems: &Mems,
    [from, to]: [ur_mem_handle_t; 2],
    [source, target, region]: [[u64; 3]; 3],
) -> Outcome<()> {
    let (queue, source, target, region) = (mems.queue, at(source), at(target), of(region));
    mems.ur.check(call!(enqueue.mem_image_copy(
        queue,
        from,
        to,
        source,
        target,
        region,
        0,
        null(),
        NO_EVENT
    )))
}
/// Every kind with its description and the region that is all of it: 4 bytes a pixel.
fn kinds() -> [(ur_image_desc_t, [u64; 3]); 5] {
    [
        (desc(T::IMAGE1D, [9, 0, 0, 0]), [9, 1, 1]),
        (desc(T::IMAGE1D_ARRAY, [9, 0, 0, 4]), [9, 4, 1]),
        (desc(T::IMAGE2D, [9, 5, 0, 0]), [9, 5, 1]),
        (desc(T::IMAGE2D_ARRAY, [9, 5, 0, 4]), [9, 5, 4]),
        (desc(T::IMAGE3D, [9, 5, 3, 0]), [9, 5, 3]),
    ]
}
#[track_caller]
fn refused<V: std::fmt::Debug>(outcome: Outcome<V>, expected: R) {
    let refused = outcome.expect_err("a refusal");
    assert_eq!(refused.code, expected, "{}", refused.sentence);
}

#[test]
fn an_image_of_each_kind_holds_what_is_written_and_tells_its_shape() {
    let mems = Mems::new();
    for (desc, all) in kinds() {
        let bytes = counting(4 * all.iter().product::<u64>() as usize);
        let mem = holding(&mems, desc, &bytes);
        let mut whole = vec![0; bytes.len()];
        read(&mems, mem, [[0; 3], all], [0, 0], &mut whole).unwrap();
        assert_eq!(whole, bytes);
        let is_array = desc.arraySize > 0;
        let has_slices = is_array || desc.depth > 0;
        let rows = if desc.height == 0 { 1 } else { desc.height };
        for (name, expected) in [
            (I::ELEMENT_SIZE, 4),
            (I::ROW_PITCH, 36),
            (I::SLICE_PITCH, if has_slices { 36 * rows } else { 0 }),
            (I::WIDTH, 9),
            (I::HEIGHT, desc.height),
            (I::DEPTH, desc.depth),
            (I::ARRAY_SIZE, desc.arraySize),
        ] {
            assert_eq!(info(&mems, mem, name), Ok(expected), "{name:?} of {desc:?}");
        }
        assert_eq!(info(&mems, mem, I::NUM_MIP_LEVELS), Ok(0_u32));
        assert_eq!(info(&mems, mem, I::NUM_SAMPLES), Ok(0_u32));
        assert_eq!(info::<[u32; 2]>(&mems, mem, I::FORMAT), Ok([O::RGBA.0, C::UNSIGNED_INT8.0]));
        assert_eq!(mems.info(mem, ur_mem_info_t::SIZE), Ok(bytes.len()));
        let part = [[2, 0, 0], [3, 1, 1]];
        write(&mems, mem, part, [0, 0], &[0xee; 12]).unwrap();
        read(&mems, mem, [[0; 3], all], [0, 0], &mut whole).unwrap();
        assert_eq!(
            (&whole[8..20], &whole[..8], &whole[20..]),
            (&[0xee; 12][..], &bytes[..8], &bytes[20..])
        );
        mems.release(mem);
    }
}
#[test]
fn boxes_of_pixels_are_read_and_written_with_pitches() {
    let mems = Mems::new();
    let bytes = counting(4 * 9 * 5 * 3);
    let mem = holding(&mems, desc(T::IMAGE3D, [9, 5, 3, 0]), &bytes);
    let part = [[1, 2, 1], [4, 3, 2]];
    let mut seen = vec![0xee; 200];
    read(&mems, mem, part, [20, 80], &mut seen).unwrap();
    for (n, &byte) in seen.iter().enumerate() {
        let (x, y, z) = (n % 20, n / 20 % 4, n / 80);
        let is_inside = x < 16 && y < 3 && z < 2;
        let there = || bytes[4 + x + (y + 2) * 36 + (z + 1) * 180];
        assert_eq!(byte, if is_inside { there() } else { 0xee }, "{x} {y} {z}");
    }
    let zeros = holding(&mems, desc(T::IMAGE3D, [9, 5, 3, 0]), &[0; 540]);
    write(&mems, zeros, part, [20, 80], &seen).unwrap();
    let mut again = vec![0xee; 200];
    read(&mems, zeros, part, [20, 80], &mut again).unwrap();
    assert_eq!(again, seen);
    mems.release_all([mem, zeros]);
}
#[test]
fn layers_of_rows_have_a_pitch_of_their_own() {
    let mems = Mems::new();
    let bytes = counting(4 * 9 * 4);
    let mem = holding(&mems, desc(T::IMAGE1D_ARRAY, [9, 0, 0, 4]), &bytes);
    let mut seen = [0; 3 * 50];
    read(&mems, mem, [[1, 1, 0], [8, 3, 1]], [40, 50], &mut seen).unwrap();
    for layer in 0..3 {
        assert_eq!(seen[layer * 50..][..32], bytes[(layer + 1) * 36 + 4..][..32]);
    }
    mems.release(mem);
}
#[test]
fn the_programs_own_pixels_are_used_with_their_pitches() {
    let mems = Mems::new();
    let mut bytes = counting(48 * 6 * 3);
    let pitched =
        ur_image_desc_t { rowPitch: 48, slicePitch: 48 * 6, ..desc(T::IMAGE3D, [9, 5, 3, 0]) };
    let mem = image(&mems, F::USE_HOST_POINTER, RGBA, pitched, bytes.as_mut_ptr().cast()).unwrap();
    assert_eq!(info(&mems, mem, I::ROW_PITCH), Ok(48_usize));
    assert_eq!(info(&mems, mem, I::SLICE_PITCH), Ok(288_usize));
    write(&mems, mem, [[8, 4, 2], [1, 1, 1]], [0, 0], &[0xee; 4]).unwrap();
    assert_eq!(bytes[32 + 4 * 48 + 2 * 288..][..4], [0xee; 4]);
    mems.release(mem);
}
#[test]
fn pixels_are_copied_between_images_and_within_one() {
    let mems = Mems::new();
    let (flat, deep) = (desc(T::IMAGE2D, [9, 5, 0, 0]), desc(T::IMAGE3D, [9, 5, 3, 0]));
    let (bytes, mut seen) = (counting(180), vec![0; 48]);
    let (one, other) = (holding(&mems, flat, &bytes), holding(&mems, deep, &[0; 540]));
    copy(&mems, [one, other], [[1, 1, 0], [5, 2, 2], [4, 3, 1]]).unwrap();
    read(&mems, other, [[5, 2, 2], [4, 3, 1]], [0, 0], &mut seen).unwrap();
    for row in 0..3 {
        assert_eq!(seen[row * 16..][..16], bytes[4 + (row + 1) * 36..][..16]);
    }
    copy(&mems, [one, one], [[0, 0, 0], [4, 0, 0], [4, 5, 1]]).expect("they only touch");
    let overlapping = copy(&mems, [one, one], [[0, 0, 0], [3, 4, 0], [4, 5, 1]]);
    refused(overlapping, R::ERROR_INVALID_SIZE);
    let overlapping = copy(&mems, [one, one], [[0, 0, 0], [3, 1, 0], [4, 4, 1]]);
    refused(overlapping, R::ERROR_OVERLAPPING_REGIONS);
    let format = ur_image_format_t { channelType: C::SIGNED_INT8, ..RGBA };
    let signed = image(&mems, ANY, format, flat, null_mut()).unwrap();
    let mismatch = copy(&mems, [one, signed], [[0; 3], [0; 3], [1; 3]]);
    refused(mismatch, R::ERROR_UNSUPPORTED_IMAGE_FORMAT);
    mems.release_all([one, other, signed]);
}
#[test]
fn pixels_outside_and_pitches_that_do_not_fit_are_refused() {
    let mems = Mems::new();
    for (desc, all) in kinds() {
        let bytes = counting(4 * all.iter().product::<u64>() as usize);
        let (mem, mut memory) = (holding(&mems, desc, &bytes), vec![7; bytes.len()]);
        for side in 0..3 {
            for (origin, region) in
                [(0, all[side] + 1), (all[side], 1), (1, all[side]), (u64::MAX, 2), (0, 0)]
            {
                let mut part = [[0; 3], [1; 3]];
                (part[0][side], part[1][side]) = (origin, region);
                refused(read(&mems, mem, part, [0, 0], &mut memory), R::ERROR_INVALID_SIZE);
                refused(write(&mems, mem, part, [0, 0], &memory), R::ERROR_INVALID_SIZE);
                let three = [part[0], [0; 3], part[1]];
                refused(copy(&mems, [mem, mem], three), R::ERROR_INVALID_SIZE);
            }
        }
        let whole = [[0; 3], all];
        refused(read(&mems, mem, whole, [35, 0], &mut memory), R::ERROR_INVALID_SIZE);
        refused(write(&mems, mem, whole, [0, 35], &memory), R::ERROR_INVALID_SIZE);
        if all[1] > 1 || all[2] > 1 {
            refused(read(&mems, mem, whole, [usize::MAX, 0], &mut memory), R::ERROR_INVALID_SIZE);
        }
        assert!(memory.iter().all(|&byte| byte == 7));
        read(&mems, mem, whole, [0, 0], &mut memory).unwrap();
        assert_eq!(memory, bytes);
        mems.release(mem);
    }
}
#[test]
fn what_makes_no_image_is_refused() {
    let mems = Mems::new();
    let mut bytes = [0_u8; 4096];
    let (none, host) = (null_mut(), bytes.as_mut_ptr().cast::<c_void>());
    let own = F::USE_HOST_POINTER;
    let flat = desc(T::IMAGE2D, [9, 5, 0, 0]);
    let (size, form) = (R::ERROR_INVALID_IMAGE_SIZE, R::ERROR_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    let cases = [
        (ANY, desc(T::IMAGE2D, [0, 5, 0, 0]), none, size),
        (ANY, desc(T::IMAGE2D, [9, 0, 0, 0]), none, size),
        (ANY, desc(T::IMAGE3D, [9, 5, 0, 0]), none, size),
        (ANY, desc(T::IMAGE1D_ARRAY, [9, 0, 0, 0]), none, size),
        (ANY, desc(T::IMAGE2D_ARRAY, [9, 5, 0, 0]), none, size),
        (ANY, desc(T::IMAGE2D, [(1 << 16) + 1, 5, 0, 0]), none, size),
        (ANY, desc(T::IMAGE2D, [usize::MAX, usize::MAX, 0, 0]), none, size),
        (ANY, desc(T::IMAGE3D, [1 << 16, 1 << 16, 1 << 16, 0]), none, size),
        (ANY, desc(T::IMAGE_CUBEMAP_EXP, [9, 9, 0, 6]), none, form),
        (ANY, desc(T(77), [9, 9, 0, 6]), none, form),
        (ANY, ur_image_desc_t { numMipLevel: 1, ..flat }, none, form),
        (ANY, ur_image_desc_t { numSamples: 1, ..flat }, none, form),
        (ANY, ur_image_desc_t { rowPitch: 36, ..flat }, none, form),
        (ANY, ur_image_desc_t { slicePitch: 360, ..flat }, none, form),
        (own, ur_image_desc_t { rowPitch: 35, ..flat }, host, form),
        (own, ur_image_desc_t { rowPitch: 37, ..flat }, host, form),
        (own, ur_image_desc_t { slicePitch: 179, ..flat }, host, form),
        (own, ur_image_desc_t { slicePitch: 181, ..flat }, host, form),
        (own, ur_image_desc_t { rowPitch: usize::MAX - 3, ..flat }, host, form),
        (own, flat, none, R::ERROR_INVALID_HOST_PTR),
        (F::ALLOC_COPY_HOST_POINTER, flat, none, R::ERROR_INVALID_HOST_PTR),
        (ANY, flat, host, R::ERROR_INVALID_HOST_PTR),
        (own | F::ALLOC_HOST_POINTER, flat, host, R::ERROR_INVALID_VALUE),
        (F::READ_ONLY | F::WRITE_ONLY, flat, none, R::ERROR_INVALID_VALUE),
        (F(1 << 12), flat, none, R::ERROR_INVALID_ENUMERATION),
    ];
    for (flags, desc, host, expected) in cases {
        let code = image(&mems, flags, RGBA, desc, host).expect_err("a refusal").code;
        assert_eq!(code, expected, "{:#x} {desc:?} {host:?}", flags.0);
    }
}
#[test]
fn formats_have_the_pixels_that_their_channels_make() {
    let mems = Mems::new();
    let flat = desc(T::IMAGE2D, [3, 2, 0, 0]);
    let good = [
        (O::R, C::UNSIGNED_INT8, 1),
        (O::A, C::FLOAT, 4),
        (O::RX, C::HALF_FLOAT, 2),
        (O::RG, C::SIGNED_INT16, 4),
        (O::RA, C::UNORM_INT16, 4),
        (O::RGX, C::SIGNED_INT32, 8),
        (O::RGB, C::UNORM_SHORT_565, 2),
        (O::RGB, C::UNSIGNED_INT8, 3),
        (O::RGB, C::SIGNED_INT32, 12),
        (O::RGBX, C::UNORM_INT16, 8),
        (O::BGRA, C::FLOAT, 16),
        (O::ABGR, C::HALF_FLOAT, 8),
        (O::RGB, C::INT_101010, 4),
        (O::RGBX, C::UNORM_SHORT_555, 2),
        (O::RGBA, C::FLOAT, 16),
        (O::RGBA, C::SNORM_INT16, 8),
        (O::BGRA, C::UNORM_INT8, 4),
        (O::ARGB, C::SIGNED_INT8, 4),
        (O::ABGR, C::UNSIGNED_INT8, 4),
        (O::INTENSITY, C::SNORM_INT8, 1),
        (O::LUMINANCE, C::HALF_FLOAT, 2),
        (O::SRGBA, C::UNORM_INT8, 4),
    ];
    for (order, channel, bytes) in good {
        let format = ur_image_format_t { channelOrder: order, channelType: channel };
        let mem = image(&mems, ANY, format, flat, null_mut()).unwrap();
        assert_eq!(info(&mems, mem, I::ELEMENT_SIZE), Ok::<usize, _>(bytes), "{format:?}");
        assert_eq!(mems.info(mem, ur_mem_info_t::SIZE), Ok(bytes * 6));
        mems.release(mem);
    }
    for (order, channel) in [
        (O::RGBA, C::UNORM_SHORT_565),
        (O::R, C::INT_101010),
        (O::INTENSITY, C::SIGNED_INT32),
        (O::SRGBA, C::FLOAT),
        (O(99), C::FLOAT),
        (O::RGBA, C(99)),
    ] {
        let format = ur_image_format_t { channelOrder: order, channelType: channel };
        let code = image(&mems, ANY, format, flat, null_mut()).expect_err("a refusal").code;
        assert_eq!(code, R::ERROR_UNSUPPORTED_IMAGE_FORMAT, "{format:?}");
    }
}
#[test]
fn buffers_are_no_images_and_images_no_buffers() {
    let mems = Mems::new();
    let buffer = mems.holding(&[0; 64]);
    let mem = holding(&mems, desc(T::IMAGE1D, [4, 0, 0, 0]), &[0; 16]);
    let (bad, one) = (R::ERROR_INVALID_MEM_OBJECT, [[0; 3], [1; 3]]);
    let mut memory = [0; 16];
    refused(read(&mems, buffer, one, [0, 0], &mut memory), bad);
    refused(write(&mems, buffer, one, [0, 0], &memory), bad);
    refused(copy(&mems, [buffer, mem], [[0; 3], [0; 3], [1; 3]]), bad);
    refused(copy(&mems, [mem, buffer], [[0; 3], [0; 3], [1; 3]]), bad);
    refused(info::<usize>(&mems, buffer, I::WIDTH), bad);
    refused(mems.read(mem, 0, &mut memory), bad);
    refused(mems.write(mem, 0, &memory), bad);
    refused(mems.copy([mem, buffer], [0, 0], 4), bad);
    refused(mems.fill(mem, &[1], 0, 16), bad);
    refused(mems.map(mem, ur_map_flags_t::READ, 0, 4), bad);
    refused(mems.part(mem, F::default(), 0, 4), bad);
    mems.release_all([buffer, mem]);
}
#[test]
fn a_native_handle_of_an_image_is_another_reference_to_it() {
    let mems = Mems::new();
    let flat = desc(T::IMAGE1D, [4, 0, 0, 0]);
    let mem = holding(&mems, flat, &[5; 16]);
    let (mut native, mut again) = (0, ur_mem_handle_t::NULL);
    assert_eq!(call!(mem.get_native_handle(mem, mems.ur.device, &mut native)), R::SUCCESS);
    let make = |native, to: &mut ur_mem_handle_t| {
        let context = mems.ur.context;
        call!(mem.image_create_with_native_handle(native, context, &RGBA, &flat, null(), to))
    };
    assert_eq!(make(native, &mut again), R::SUCCESS);
    mems.release(mem);
    assert_eq!(info(&mems, again, I::WIDTH), Ok(4_usize));
    let buffer = mems.holding(&[0; 16]);
    assert_eq!(call!(mem.get_native_handle(buffer, mems.ur.device, &mut native)), R::SUCCESS);
    let mut none = ur_mem_handle_t::NULL;
    assert_eq!(make(native, &mut none), R::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(make(12, &mut none), R::ERROR_INVALID_MEM_OBJECT);
    mems.release_all([again, buffer]);
}
#[test]
fn a_released_image_lasts_until_its_commands_have_ended() {
    let mems = Mems::new();
    let gate = Gate::lasting();
    let first = gate.close(mems.queue);
    let flat = desc(T::IMAGE2D, [100, 100, 0, 0]);
    let bytes = counting(40_000);
    let (one, other) = (holding(&mems, flat, &bytes), holding(&mems, flat, &[0; 40_000]));
    copy(&mems, [one, other], [[0; 3], [0; 3], [100, 100, 1]]).unwrap();
    let (mut seen, mut event) = (vec![0_u8; 40_000], ur_event_handle_t::NULL);
    let (queue, to) = (mems.queue, seen.as_mut_ptr().cast());
    let (origin, region) = (at([0; 3]), of([100, 100, 1]));
    let code = call!(enqueue.mem_image_read(
        queue,
        other,
        false,
        origin,
        region,
        0,
        0,
        to,
        0,
        null(),
        &mut event
    ));
    assert_eq!(code, R::SUCCESS);
    mems.release_all([one, other]);
    let others = [(); 3].map(|()| holding(&mems, flat, &[0xee; 40_000]));
    let (name, info) = (ur_event_info_t::COMMAND_TYPE, &mems.ur);
    let kind = info.value(|size, to, ret| call!(event.get_info(event, name, size, to, ret)));
    assert_eq!(kind, Ok(ur_command_t::MEM_IMAGE_READ.0));
    gate.open();
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    assert!(seen == bytes);
    for event in [event, first] {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
    mems.release_all(others);
}
#[test]
fn the_device_takes_images_as_large_as_it_says() {
    let mems = Mems::new();
    let ask = |name| {
        let device = mems.ur.device;
        mems.ur.value::<usize>(|size, to, ret| call!(device.get_info(device, name, size, to, ret)))
    };
    let widest = ask(ur_device_info_t::IMAGE2D_MAX_WIDTH).unwrap();
    mems.release(image(&mems, ANY, RGBA, desc(T::IMAGE2D, [widest, 1, 0, 0]), null_mut()).unwrap());
    let wider = image(&mems, ANY, RGBA, desc(T::IMAGE2D, [widest + 1, 1, 0, 0]), null_mut());
    refused(wider, R::ERROR_INVALID_IMAGE_SIZE);
}
