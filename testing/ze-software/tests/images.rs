//! Images: copies of regions, and kernels that read, write and sample images.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod driver;
mod opencl;
use driver::{IN_ORDER, NONE, World};
use std::ptr::{from_ref, null, null_mut};
use ze_sys::*;

const RGBA: [u32; 4] = [0, 1, 2, 3];
fn desc(layout: u32, type_: u32, [width, height, depth]: [u32; 3]) -> ze_image_desc_t {
    let [x, y, z, w] = RGBA;
    ze_image_desc_t {
        stype: ZE_STRUCTURE_TYPE_IMAGE_DESC,
        type_: if depth > 1 { ZE_IMAGE_TYPE_3D } else { ZE_IMAGE_TYPE_2D },
        format: ze_image_format_t { layout, type_, x, y, z, w },
        width: u64::from(width),
        height,
        depth,
        ..Default::default()
    }
}
impl World {
    fn image(&self, desc: &ze_image_desc_t) -> ze_image_handle_t {
        let mut image = null_mut();
        ok!(self.ze, image.pfnCreate(self.context, self.device, desc, &mut image));
        image
    }
    fn write<T>(&self, list: ze_command_list_handle_t, image: ze_image_handle_t, from: &[T]) {
        let (from, waits) = (from.as_ptr().cast(), null_mut());
        ok!(self.ze, list.pfnAppendImageCopyFromMemory(list, image, from, null(), NONE, 0, waits));
    }
    fn read<T>(
        &self,
        list: ze_command_list_handle_t,
        to: &mut [T],
        image: ze_image_handle_t,
        part: *const ze_image_region_t,
    ) {
        let (to, waits) = (to.as_mut_ptr().cast(), null_mut());
        ok!(self.ze, list.pfnAppendImageCopyToMemory(list, to, image, part, NONE, 0, waits));
    }
}
const fn region([x, y, z]: [u32; 3], [width, height, depth]: [u32; 3]) -> ze_image_region_t {
    ze_image_region_t { originX: x, originY: y, originZ: z, width, height, depth }
}

#[test]
fn a_box_of_one_image_goes_into_another_and_out() {
    let w = World::new();
    let kind = desc(ZE_IMAGE_FORMAT_LAYOUT_16, ZE_IMAGE_FORMAT_TYPE_UINT, [4, 3, 2]);
    let (one, other, list) = (w.image(&kind), w.image(&kind), w.immediate(IN_ORDER));
    let texels: Vec<u16> = (0..24).collect();
    w.write(list, one, &texels);
    let (to, from) = (region([0, 0, 0], [2, 2, 2]), region([1, 1, 0], [2, 2, 2]));
    ok!(w.ze, list.pfnAppendImageCopyRegion(list, other, one, &to, &from, NONE, 0, null_mut()));
    let (mut part, mut whole) = ([0_u16; 4], [0_u16; 24]);
    w.read(list, &mut part, other, &region([0, 0, 1], [2, 2, 1]));
    w.read(list, &mut whole, other, null());
    w.finish(list);
    assert_eq!(part, [17, 18, 21, 22]);
    assert_eq!(whole[..8], [5, 6, 0, 0, 9, 10, 0, 0]);
    ok!(w.ze, image.pfnDestroy(one));
    ok!(w.ze, image.pfnDestroy(other));
}
#[test]
fn images_that_cannot_be_are_refused() {
    let w = World::new();
    let mut image = null_mut();
    let none = desc(ZE_IMAGE_FORMAT_LAYOUT_8, ZE_IMAGE_FORMAT_TYPE_UINT, [0, 1, 1]);
    let code = ze!(w.ze, image.pfnCreate(w.context, w.device, &none, &mut image));
    assert_eq!(code, ZE_RESULT_ERROR_INVALID_SIZE);
    let strange = desc(ZE_IMAGE_FORMAT_LAYOUT_NV12, ZE_IMAGE_FORMAT_TYPE_UINT, [1, 1, 1]);
    let code = ze!(w.ze, image.pfnCreate(w.context, w.device, &strange, &mut image));
    assert_eq!(code, ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT);
}
#[test]
fn a_view_shows_the_same_bytes_as_other_numbers() {
    let w = World::new();
    let numbers = desc(ZE_IMAGE_FORMAT_LAYOUT_32, ZE_IMAGE_FORMAT_TYPE_UINT, [2, 1, 1]);
    let bytes = desc(ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8, ZE_IMAGE_FORMAT_TYPE_UNORM, [2, 1, 1]);
    let (image, mut view, list) = (w.image(&numbers), null_mut(), w.immediate(IN_ORDER));
    ok!(w.ze, image.pfnViewCreateExt(w.context, w.device, &bytes, image, &mut view));
    w.write(list, image, &[0x0403_0201_u32, 5]);
    let mut seen = [0_u8; 8];
    w.read(list, &mut seen, view, null());
    w.finish(list);
    assert_eq!(seen, [1, 2, 3, 4, 5, 0, 0, 0]);
}
#[test]
fn a_kernel_reads_writes_and_samples() {
    let source = "kernel void k(read_only image2d_t from, write_only image2d_t to, sampler_t s) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        float4 near = read_imagef(from, at);
        float4 between = read_imagef(from, s, (float2)(at.x + 1.0f, at.y + 0.5f));
        write_imagef(to, at, (float4)(near.x, between.x, get_image_width(from), get_image_height(from)));
    }";
    let Some(code) = opencl::compiled(source) else { return };
    let w = World::new();
    let one = desc(ZE_IMAGE_FORMAT_LAYOUT_8, ZE_IMAGE_FORMAT_TYPE_UNORM, [3, 2, 1]);
    let four = desc(ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32, ZE_IMAGE_FORMAT_TYPE_FLOAT, [3, 2, 1]);
    let (from, to, list) = (w.image(&one), w.image(&four), w.immediate(IN_ORDER));
    let sampler = ze_sampler_desc_t {
        stype: ZE_STRUCTURE_TYPE_SAMPLER_DESC,
        addressMode: ZE_SAMPLER_ADDRESS_MODE_CLAMP,
        filterMode: ZE_SAMPLER_FILTER_MODE_LINEAR,
        ..Default::default()
    };
    let mut s = null_mut();
    ok!(w.ze, sampler.pfnCreate(w.context, w.device, &sampler, &mut s));
    let description = ze_module_desc_t {
        stype: ZE_STRUCTURE_TYPE_MODULE_DESC,
        format: ZE_MODULE_FORMAT_IL_SPIRV,
        inputSize: code.len(),
        pInputModule: code.as_ptr(),
        ..Default::default()
    };
    let (mut module, mut kernel) = (null_mut(), null_mut());
    ok!(w.ze, module.pfnCreate(w.context, w.device, &description, &mut module, null_mut()));
    let k = ze_kernel_desc_t { pKernelName: c"k".as_ptr(), ..Default::default() };
    ok!(w.ze, kernel.pfnCreate(module, &k, &mut kernel));
    ok!(w.ze, kernel.pfnSetGroupSize(kernel, 3, 2, 1));
    ok!(w.ze, kernel.pfnSetArgumentValue(kernel, 0, 8, from_ref(&from).cast()));
    ok!(w.ze, kernel.pfnSetArgumentValue(kernel, 1, 8, from_ref(&to).cast()));
    ok!(w.ze, kernel.pfnSetArgumentValue(kernel, 2, 8, from_ref(&s).cast()));
    w.write(list, from, &[0_u8, 51, 255, 102, 204, 0]);
    let groups = ze_group_count_t { groupCountX: 1, groupCountY: 1, groupCountZ: 1 };
    ok!(w.ze, list.pfnAppendLaunchKernel(list, kernel, &groups, NONE, 0, null_mut()));
    let mut seen = [[0_f32; 4]; 6];
    w.read(list, &mut seen, to, null());
    w.finish(list);
    let tenths = seen.map(|texel| texel.map(|number| (number * 10.0).round() as i32));
    assert_eq!(tenths[..3], [[0, 1, 30, 20], [2, 6, 30, 20], [10, 10, 30, 20]]);
    assert_eq!(tenths[3..], [[4, 6, 30, 20], [8, 4, 30, 20], [0, 0, 30, 20]]);
}
