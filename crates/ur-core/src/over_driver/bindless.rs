//! Bindless images and import of external memory, for drivers that have neither: queries for support answer no. All
//! other entries check their arguments and return `UNSUPPORTED_FEATURE`.
use super::{
    OverDriver,
    objects::{Context, Contexts, Device},
};
use ur_adapter::{api::BindlessImagesExpApi, error::Result, object::Borrowed};
use ur_sys::{
    ur_bool_t, ur_exp_external_mem_type_t, ur_exp_image_mem_type_t, ur_image_desc_t,
    ur_image_format_t,
};

const NO: ur_bool_t = 0;

impl<D: Contexts> BindlessImagesExpApi for OverDriver<D> {
    fn bindless_images_get_image_memory_handle_type_support_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        _desc: &ur_image_desc_t,
        _format: &ur_image_format_t,
        _type: ur_exp_image_mem_type_t,
    ) -> Result<ur_bool_t> {
        context.check(device).map(|()| NO)
    }
    fn bindless_images_get_image_unsampled_handle_support_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        _desc: &ur_image_desc_t,
        _format: &ur_image_format_t,
        _type: ur_exp_image_mem_type_t,
    ) -> Result<ur_bool_t> {
        context.check(device).map(|()| NO)
    }
    fn bindless_images_get_image_sampled_handle_support_exp(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        _desc: &ur_image_desc_t,
        _format: &ur_image_format_t,
        _type: ur_exp_image_mem_type_t,
    ) -> Result<ur_bool_t> {
        context.check(device).map(|()| NO)
    }
    fn bindless_images_supports_importing_handle_type_exp(
        _device: Borrowed<'_, Device<D>>,
        _type: ur_exp_external_mem_type_t,
    ) -> Result<ur_bool_t> {
        Ok(NO)
    }
}
