//! Images of every kind and of several formats: pixels that are written, copied and read with the host's own
//! pitches; and regions that exceed their image.
use crate::{
    ask,
    bench::Bench,
    case::{Case, Stop, Verdict},
    ensure, info, must, same,
};
use std::ptr::{null, null_mut};
use ur_image_channel_order_t as Order;
use ur_image_channel_type_t as Channel;
use ur_mem_type_t as Kind;
use ur_sys::*;

/// A kind of image, its name, its sides in pixels as regions count them, and the members of its descriptor:
/// height, depth, layers.
type Shape = (Kind, &'static str, [u64; 3], [usize; 3]);
const SHAPES: [Shape; 5] = [
    (Kind::IMAGE1D, "1D", [40, 1, 1], [0, 0, 0]),
    (Kind::IMAGE2D, "2D", [20, 12, 1], [12, 0, 0]),
    (Kind::IMAGE3D, "3D", [12, 10, 6], [10, 6, 0]),
    (Kind::IMAGE1D_ARRAY, "1D array", [24, 5, 1], [0, 0, 5]),
    (Kind::IMAGE2D_ARRAY, "2D array", [12, 10, 4], [10, 0, 4]),
];
/// Channel order, channel type, and bytes per pixel.
const FORMATS: [(Order, Channel, usize); 16] = [
    (Order::A, Channel::UNSIGNED_INT8, 1),
    (Order::RX, Channel::HALF_FLOAT, 2),
    (Order::RA, Channel::UNSIGNED_INT16, 4),
    (Order::RGX, Channel::UNORM_INT16, 4),
    (Order::RGB, Channel::UNSIGNED_INT8, 3),
    (Order::RGBX, Channel::UNSIGNED_INT8, 4),
    (Order::ARGB, Channel::UNORM_INT8, 4),
    (Order::ABGR, Channel::SIGNED_INT8, 4),
    (Order::RGBA, Channel::UNSIGNED_INT8, 4),
    (Order::RGBA, Channel::UNORM_INT8, 4),
    (Order::RGBA, Channel::SIGNED_INT16, 8),
    (Order::RGBA, Channel::HALF_FLOAT, 8),
    (Order::RGBA, Channel::FLOAT, 16),
    (Order::RG, Channel::UNSIGNED_INT16, 4),
    (Order::R, Channel::UNSIGNED_INT8, 1),
    (Order::R, Channel::FLOAT, 4),
];

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (index, (_, name, ..)) in SHAPES.iter().enumerate() {
        let mut add =
            |entry: &str, rule: &str, sentence: &str, judge: fn(&Bench, &Shape) -> Verdict| {
                let title = format!("{name}: {sentence}");
                let judge = move |b: &Bench| judge(b, &SHAPES[index]);
                all.push(Case::new("memory", entry, rule, title, judge));
            };
        let copies = "urEnqueueMemImageWrite, urEnqueueMemImageRead, urEnqueueMemImageCopy";
        add(
            "urMemImageGetInfo",
            "an image is what its descriptor says",
            "an image answers the sides that it has, and 0 for others",
            sides,
        );
        add(
            copies,
            "an image holds what is written",
            "all of an image and a part of it are written, copied and read",
            holds,
        );
        add(
            "urEnqueueMemImageRead",
            "rows and slices at pitches of the host's own",
            "bytes between rows are left alone",
            pitched,
        );
        add(
            "urEnqueueMemImageRead",
            "UR_RESULT_ERROR_INVALID_SIZE for a part that is not in the image",
            "a part that does not lie within the image is not read",
            read_outside,
        );
        add(
            "urEnqueueMemImageWrite",
            "UR_RESULT_ERROR_INVALID_SIZE for a part that is not in the image",
            "a part that does not lie within the image is not written",
            write_outside,
        );
        add(
            "urEnqueueMemImageCopy",
            "UR_RESULT_ERROR_INVALID_SIZE for a part that is not in the image",
            "a part that does not lie within either image is not copied",
            copy_outside,
        );
        add(
            "urMemImageCreate",
            "UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER",
            "it begins with a copy of the host's pixels, at the host's pitches",
            copied,
        );
        add(
            "urMemImageCreate",
            "UR_RESULT_ERROR_INVALID_IMAGE_SIZE",
            "an image of no width, or wider than can be, is refused",
            sizes,
        );
    }
    for (index, (order, channel, _)) in FORMATS.iter().enumerate() {
        let short = |of: String| {
            of.rsplit_once("_TYPE_")
                .or(of.rsplit_once("_ORDER_"))
                .map_or(of.clone(), |(_, end)| end.into())
        };
        let name = format!(
            "an image of {} {} holds its pixels",
            short(format!("{order:?}")),
            short(format!("{channel:?}"))
        );
        all.push(Case::new("memory", "urMemImageCreate", "pixels of any format", name, move |b| {
            format(b, index)
        }));
    }
    all.push(Case::new(
        "memory",
        "urMemImageCreate",
        "UR_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT",
        "channels that fit no order are UNSUPPORTED_IMAGE_FORMAT, and nothing is written",
        bad_format,
    ));
    all.push(Case::new(
        "graph",
        "urEnqueueMemImageCopy, urEnqueueGraphExp",
        "what is captured runs when the graph does",
        "a captured copy of an image runs with the graph, twice, with the pixels of then",
        captured,
    ));
    all
}
fn desc(shape: &Shape) -> ur_image_desc_t {
    let (kind, _, sides, [height, depth, layers]) = *shape;
    ur_image_desc_t {
        stype: ur_structure_type_t::IMAGE_DESC,
        pNext: null(),
        r#type: kind,
        width: sides[0] as usize,
        height,
        depth,
        arraySize: layers,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    }
}
fn create(
    b: &Bench,
    (order, channel): (Order, Channel),
    desc: &ur_image_desc_t,
    host: &mut [u8],
) -> Verdict<(ur_result_t, ur_mem_handle_t)> {
    b.needs_images()?;
    let format = ur_image_format_t { channelOrder: order, channelType: channel };
    let (flags, from) = match host.is_empty() {
        true => (ur_mem_flags_t::READ_WRITE, null_mut()),
        false => {
            let copy = ur_mem_flags_t::READ_WRITE | ur_mem_flags_t::ALLOC_COPY_HOST_POINTER;
            (copy, host.as_mut_ptr().cast())
        }
    };
    let (context, mut image) = (b.context()?, ur_mem_handle_t::NULL);
    let code = ask!(b, mem.image_create(context, flags, &format, desc, from, &mut image));
    ensure!(image.is_null() == (code != ur_result_t::SUCCESS), "{code:?}, and it is {image:?}");
    if code == ur_result_t::ERROR_UNSUPPORTED_IMAGE_FORMAT && (order, channel) != BAD {
        return Err(Stop::skipped("the device has no images of this format"));
    }
    Ok((code, image))
}
fn new(b: &Bench, shape: &Shape) -> Verdict<ur_mem_handle_t> {
    let (code, image) = create(b, (Order::RGBA, Channel::UNSIGNED_INT8), &desc(shape), &mut [])?;
    b.succeeded("urMemImageCreate", code)?;
    Ok(image)
}
fn release(b: &Bench, image: ur_mem_handle_t) -> Verdict {
    must!(b, mem.release(image));
    Ok(())
}
/// A region of an image: its origin and its extent.
#[derive(Clone, Copy)]
struct Part([u64; 3], [u64; 3]);
impl Part {
    fn origin(self) -> ur_rect_offset_t {
        let [x, y, z] = self.0;
        ur_rect_offset_t { x, y, z }
    }
    fn region(self) -> ur_rect_region_t {
        let [width, height, depth] = self.1;
        ur_rect_region_t { width, height, depth }
    }
    fn pixels(self) -> usize {
        self.1.iter().product::<u64>() as usize
    }
    /// The middle of an image: without one pixel at either end of each side that is longer than two.
    fn middle(sides: [u64; 3]) -> Self {
        let inner = |side: u64| if side > 2 { (1, side - 2) } else { (0, side) };
        Self(sides.map(|side| inner(side).0), sides.map(|side| inner(side).1))
    }
    /// The index of each pixel of the region in an image with these sides.
    fn places(self, sides: [u64; 3]) -> Vec<usize> {
        let Self([x, y, z], [width, height, depth]) = self;
        let mut all = Vec::new();
        for slice in z..z + depth {
            for row in y..y + height {
                all.extend(
                    (x..x + width).map(|at| ((slice * sides[1] + row) * sides[0] + at) as usize),
                );
            }
        }
        all
    }
}
fn write_code(
    b: &Bench,
    image: ur_mem_handle_t,
    part: Part,
    bytes: &mut [u8],
) -> Verdict<ur_result_t> {
    let (queue, from, none) = (b.queue()?, bytes.as_mut_ptr().cast(), null_mut());
    let (origin, region) = (part.origin(), part.region());
    Ok(ask!(
        b,
        enqueue.mem_image_write(queue, image, true, origin, region, 0, 0, from, 0, null(), none)
    ))
}
fn write(b: &Bench, image: ur_mem_handle_t, part: Part, bytes: &mut [u8]) -> Verdict {
    let code = write_code(b, image, part, bytes)?;
    b.succeeded("urEnqueueMemImageWrite", code)
}
/// Reads into memory with the given pitches; 0 means tightly packed.
fn read_code(
    b: &Bench,
    image: ur_mem_handle_t,
    part: Part,
    (row, slice): (usize, usize),
    bytes: &mut [u8],
) -> Verdict<ur_result_t> {
    let (queue, to, none) = (b.queue()?, bytes.as_mut_ptr().cast(), null_mut());
    let (origin, region) = (part.origin(), part.region());
    Ok(ask!(
        b,
        enqueue.mem_image_read(queue, image, true, origin, region, row, slice, to, 0, null(), none)
    ))
}
fn read(b: &Bench, image: ur_mem_handle_t, part: Part, pixel: usize) -> Verdict<Vec<u8>> {
    let mut bytes = vec![0; pixel * part.pixels()];
    let code = read_code(b, image, part, (0, 0), &mut bytes)?;
    b.succeeded("urEnqueueMemImageRead", code)?;
    Ok(bytes)
}
fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 % 251) as u8).collect()
}
fn at(bytes: &[u8], places: &[usize], pixel: usize) -> Vec<u8> {
    places.iter().flat_map(|place| bytes[pixel * place..pixel * (place + 1)].to_vec()).collect()
}

fn sides(b: &Bench, shape: &Shape) -> Verdict {
    use ur_image_info_t as Info;
    let (_, _, sides, [height, depth, layers]) = *shape;
    let image = new(b, shape)?;
    let expected = [
        (Info::WIDTH, sides[0] as usize),
        (Info::HEIGHT, height),
        (Info::DEPTH, depth),
        (Info::ARRAY_SIZE, layers),
        (Info::ELEMENT_SIZE, 4),
    ];
    for (name, expected) in expected {
        same!(info!(b, mem.image_get_info(image, name), usize), expected, "{name:?}");
    }
    let pitch = info!(b, mem.image_get_info(image, Info::ROW_PITCH), usize);
    ensure!(pitch >= 4 * sides[0] as usize, "{} pixels at a pitch of {pitch}", sides[0]);
    release(b, image)
}
fn captured(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let (shape, none, queue) = (&SHAPES[1], null_mut(), b.queue()?);
    let (one, two, whole) = (new(b, shape)?, new(b, shape)?, Part([0; 3], shape.2));
    let (origin, region) = (whole.origin(), whole.region());
    let mut graph = ur_exp_graph_handle_t::NULL;
    let mut runs = ur_exp_executable_graph_handle_t::NULL;
    must!(b, queue_exp.begin_graph_capture_exp(queue));
    must!(b, enqueue.mem_image_copy(queue, one, two, origin, origin, region, 0, null(), none));
    must!(b, queue_exp.end_graph_capture_exp(queue, &mut graph));
    must!(b, graph_exp.instantiate_graph_exp(graph, &mut runs));
    for turn in [1, 2] {
        let mut there: Vec<_> = noise(4 * whole.pixels()).iter().map(|byte| byte ^ turn).collect();
        write(b, one, whole, &mut there)?;
        must!(b, enqueue_exp.graph_exp(queue, runs, 0, null(), none));
        b.finish(queue)?;
        same!(read(b, two, whole, 4)?, there, "the copy");
    }
    must!(b, graph_exp.executable_graph_destroy_exp(runs));
    must!(b, graph_exp.destroy_exp(graph));
    release(b, one)?;
    release(b, two)
}
fn holds(b: &Bench, shape: &Shape) -> Verdict {
    let (sides, whole) = (shape.2, Part([0; 3], shape.2));
    let (one, two) = (new(b, shape)?, new(b, shape)?);
    let mut there = noise(4 * whole.pixels());
    write(b, one, whole, &mut there)?;
    same!(read(b, one, whole, 4)?, there, "the whole image");
    let part = Part::middle(sides);
    let places = part.places(sides);
    same!(read(b, one, part, 4)?, at(&there, &places, 4), "the middle of it");
    // The middle of the second image becomes that of the first, moved to its corner; then the middle of the
    // first is overwritten.
    write(b, two, whole, &mut vec![1; 4 * whole.pixels()])?;
    let (queue, corner) = (b.queue()?, Part([0; 3], part.1));
    let (from, to, region) = (part.origin(), corner.origin(), part.region());
    must!(b, enqueue.mem_image_copy(queue, one, two, from, to, region, 0, null(), null_mut()));
    b.finish(queue)?;
    let mut expected = vec![1; 4 * whole.pixels()];
    for (from, to) in places.iter().zip(corner.places(sides)) {
        expected[4 * to..4 * to + 4].copy_from_slice(&there[4 * from..4 * from + 4]);
    }
    same!(read(b, two, whole, 4)?, expected, "what was copied, and what lies beside it");
    write(b, one, part, &mut vec![9; 4 * part.pixels()])?;
    for place in places {
        there[4 * place..4 * place + 4].fill(9);
    }
    same!(read(b, one, whole, 4)?, there, "what was written, and what lies beside it");
    release(b, one)?;
    release(b, two)
}
fn pitched(b: &Bench, shape: &Shape) -> Verdict {
    let (kind, _, sides, _) = *shape;
    let (image, whole) = (new(b, shape)?, Part([0; 3], sides));
    let mut there = noise(4 * whole.pixels());
    write(b, image, whole, &mut there)?;
    let (row, rows) = (4 * sides[0] as usize, sides[1] as usize);
    // The layers of a 1D array are one slice pitch apart.
    let (pitch, slice) = match kind {
        Kind::IMAGE1D_ARRAY => (row, row + 16),
        _ => (row + 16, (row + 16) * rows + 64),
    };
    let step = if kind == Kind::IMAGE1D_ARRAY { slice } else { pitch };
    let mut bytes = vec![0x5a; slice.max(step * rows) * sides[2] as usize];
    let slices = if kind == Kind::IMAGE1D_ARRAY || sides[2] > 1 { slice } else { 0 };
    let code = read_code(b, image, whole, (pitch, slices), &mut bytes)?;
    b.succeeded("urEnqueueMemImageRead", code)?;
    let mut expected = vec![0x5a; bytes.len()];
    for (n, from) in there.chunks_exact(row).enumerate() {
        let to = n / rows * slice + n % rows * step;
        expected[to..to + row].copy_from_slice(from);
    }
    ensure!(bytes == expected, "rows are elsewhere, or bytes between them are written");
    release(b, image)
}
/// Regions that begin or end outside of an image.
fn outside(sides: [u64; 3]) -> Vec<Part> {
    let mut all = Vec::new();
    for side in 0..3 {
        let (mut long, mut late, mut far) = ((([0; 3]), sides), ([0; 3], [1; 3]), ([0; 3], [1; 3]));
        long.1[side] += 1;
        late.0[side] = sides[side];
        (far.0[side], far.1[side]) = (u64::MAX - 1, 2);
        all.extend([long, late, far].map(|(origin, region)| Part(origin, region)));
    }
    all
}
const REFUSED: ur_result_t = ur_result_t::ERROR_INVALID_SIZE;

fn read_outside(b: &Bench, shape: &Shape) -> Verdict {
    let image = new(b, shape)?;
    for part in outside(shape.2) {
        let mut bytes = vec![0x5a; 1 << 16];
        let code = read_code(b, image, part, (0, 0), &mut bytes)?;
        b.was_refused("urEnqueueMemImageRead", code, REFUSED)?;
        ensure!(bytes.iter().all(|byte| *byte == 0x5a), "it is read all the same");
    }
    release(b, image)
}
fn write_outside(b: &Bench, shape: &Shape) -> Verdict {
    let (image, whole) = (new(b, shape)?, Part([0; 3], shape.2));
    let mut there = noise(4 * whole.pixels());
    write(b, image, whole, &mut there)?;
    for part in outside(shape.2) {
        let code = write_code(b, image, part, &mut vec![1; 1 << 16])?;
        b.was_refused("urEnqueueMemImageWrite", code, REFUSED)?;
    }
    same!(read(b, image, whole, 4)?, there, "what the image holds");
    release(b, image)
}
fn copy_outside(b: &Bench, shape: &Shape) -> Verdict {
    let (one, two, queue) = (new(b, shape)?, new(b, shape)?, b.queue()?);
    for part in outside(shape.2) {
        let inside = ur_rect_offset_t { x: 0, y: 0, z: 0 };
        for (from, to) in [(part.origin(), inside), (inside, part.origin())] {
            let (region, none) = (part.region(), null_mut());
            let code =
                ask!(b, enqueue.mem_image_copy(queue, one, two, from, to, region, 0, null(), none));
            b.was_refused("urEnqueueMemImageCopy", code, REFUSED)?;
        }
    }
    release(b, one)?;
    release(b, two)
}
fn sizes(b: &Bench, shape: &Shape) -> Verdict {
    for width in [0, 1 << 40] {
        let desc = ur_image_desc_t { width, ..desc(shape) };
        let (code, _) = create(b, (Order::RGBA, Channel::UNSIGNED_INT8), &desc, &mut [])?;
        b.was_refused("urMemImageCreate", code, ur_result_t::ERROR_INVALID_IMAGE_SIZE)?;
    }
    Ok(())
}
fn format(b: &Bench, index: usize) -> Verdict {
    let (order, channel, pixel) = FORMATS[index];
    let (code, image) = create(b, (order, channel), &desc(&SHAPES[1]), &mut [])?;
    b.succeeded("urMemImageCreate", code)?;
    let found = info!(b, mem.image_get_info(image, ur_image_info_t::FORMAT), [u32; 2]);
    same!(found, [order.0, channel.0], "the format");
    let size = info!(b, mem.image_get_info(image, ur_image_info_t::ELEMENT_SIZE), usize);
    same!(size, pixel, "bytes of a pixel");
    let whole = Part([0; 3], SHAPES[1].2);
    let mut there = noise(pixel * whole.pixels());
    write(b, image, whole, &mut there)?;
    same!(read(b, image, whole, pixel)?, there, "the pixels");
    release(b, image)
}
/// An order of one channel with a type that packs three.
const BAD: (Order, Channel) = (Order::R, Channel::UNORM_SHORT_565);

fn bad_format(b: &Bench) -> Verdict {
    let (code, _) = create(b, BAD, &desc(&SHAPES[1]), &mut [])?;
    b.was_refused("urMemImageCreate", code, ur_result_t::ERROR_UNSUPPORTED_IMAGE_FORMAT)
}
fn copied(b: &Bench, shape: &Shape) -> Verdict {
    let (kind, _, [width, height, depth], _) = *shape;
    let [row, rows] = [4 * width as usize, height as usize];
    // The layers of a 1D array are one slice pitch apart; images without slices and layers have no slice
    // pitch.
    let pitch = row + 16;
    let (step, slice) = match kind {
        Kind::IMAGE1D_ARRAY => (2 * pitch, 2 * pitch),
        _ => (pitch, pitch * (rows + 1)),
    };
    let has_slices = kind == Kind::IMAGE1D_ARRAY || depth > 1;
    let mut host = noise(slice.max(step * rows) * depth as usize);
    let slice_pitch = if has_slices { slice } else { 0 };
    let desc = ur_image_desc_t { rowPitch: pitch, slicePitch: slice_pitch, ..desc(shape) };
    let (code, image) = create(b, (Order::RGBA, Channel::UNSIGNED_INT8), &desc, &mut host)?;
    b.succeeded("urMemImageCreate", code)?;
    let at = |n: usize| n / rows * slice + n % rows * step;
    let lines = (0..rows * depth as usize).flat_map(|n| host[at(n)..at(n) + row].to_vec());
    let expected: Vec<_> = lines.collect();
    host.fill(0);
    same!(read(b, image, Part([0; 3], shape.2), 4)?, expected, "the pixels");
    release(b, image)
}
