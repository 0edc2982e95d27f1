//! Bindless images, of which a processor has none: questions get a no, arguments are judged, and what is asked for is refused.
mod common;
use common::{scene::*, ur::*};
use std::ptr::{null, null_mut};
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}

fn description() -> (ur_image_desc_t, ur_image_format_t) {
    let desc = ur_image_desc_t {
        stype: ur_structure_type_t::IMAGE_DESC,
        pNext: null(),
        r#type: ur_mem_type_t::IMAGE2D,
        width: 16,
        height: 16,
        depth: 0,
        arraySize: 0,
        rowPitch: 0,
        slicePitch: 0,
        numMipLevel: 0,
        numSamples: 0,
    };
    let format = ur_image_format_t {
        channelOrder: ur_image_channel_order_t::RGBA,
        channelType: ur_image_channel_type_t::FLOAT,
    };
    (desc, format)
}

#[test]
fn whether_there_are_any_is_answered_with_no() {
    let ur = Ur::new();
    let (desc, format) = description();
    let (c, d, kind) = (ur.context, ur.device, ur_exp_image_mem_type_t::OPAQUE_HANDLE);
    let (desc, format) = (&raw const desc, &raw const format);
    let mut answers = [7_u8; 4];
    let [one, two, three, four] = &mut answers;
    let codes = [
        call!(
            bindless_images_exp
                .get_image_memory_handle_type_support_exp(c, d, desc, format, kind, one)
        ),
        call!(
            bindless_images_exp
                .get_image_unsampled_handle_support_exp(c, d, desc, format, kind, two)
        ),
        call!(
            bindless_images_exp
                .get_image_sampled_handle_support_exp(c, d, desc, format, kind, three)
        ),
        call!(bindless_images_exp.supports_importing_handle_type_exp(
            d,
            ur_exp_external_mem_type_t::OPAQUE_FD,
            four
        )),
    ];
    assert_eq!((codes, answers), ([R::SUCCESS; 4], [0; 4]));
    let info = ur_device_info_t::BINDLESS_IMAGES_SUPPORT_EXP;
    let bindless: u8 =
        ur.value(|size, to, ret| call!(device.get_info(d, info, size, to, ret))).unwrap();
    assert_eq!(bindless, 0);
}
#[test]
fn arguments_are_judged_before_all_is_refused() {
    let s = Scene::new();
    let (c, d) = (s.ur.context, s.ur.device);
    let (mut desc, format) = description();
    let format = &raw const format;
    let allocate = |c, d, format, desc: *const _, to: *mut _| {
        call!(bindless_images_exp.image_allocate_exp(c, d, format, desc, to))
    };
    for (wrong, code) in s.contexts() {
        untouched(code, |to, _| allocate(wrong, d, format, &desc, to.cast()));
    }
    for (wrong, code) in s.devices() {
        untouched(code, |to, _| allocate(c, wrong, format, &desc, to.cast()));
    }
    let null_pointer = R::ERROR_INVALID_NULL_POINTER;
    untouched(null_pointer, |to, _| allocate(c, d, null(), &desc, to.cast()));
    untouched(null_pointer, |to, _| allocate(c, d, format, null(), to.cast()));
    assert_eq!(allocate(c, d, format, &desc, null_mut()), null_pointer);
    untouched(R::ERROR_UNSUPPORTED_FEATURE, |to, _| allocate(c, d, format, &desc, to.cast()));
    assert!(s.ur.last_error().0.contains("urBindlessImagesImageAllocateExp"));
    desc.r#type = ur_mem_type_t(0x7000);
    let code = allocate(c, d, format, &desc, (&raw mut desc.width).cast());
    assert!(
        [R::ERROR_INVALID_ENUMERATION, R::ERROR_INVALID_IMAGE_FORMAT_DESCRIPTOR].contains(&code)
    );
}
