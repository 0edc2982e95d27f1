//! The entries for memory objects.
use super::{
    OverDriver,
    mem::{Mem, Storage, What, bytes_of, check_host, check_size},
    usm_pool::{Context, Device},
};
use crate::{
    memory::{
        flags::{check_flags, check_part, of_part},
        image_layout::{self, described},
    },
    queue::HasStreams,
};
use std::sync::{Arc, OnceLock};
use ur_adapter::{
    api::MemApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::Placement;
use ur_sys::*;

impl<D: HasStreams> MemApi for OverDriver<D> {
    fn mem_image_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        host: Option<UsmPtr>,
    ) -> Result<Owned<Mem<D>>> {
        let is_read_only = flags.contains(ur_mem_flags_t::READ_ONLY);
        let image = described::<D>(*format, desc, is_read_only)?;
        check_flags(flags)?;
        let bytes = bytes_of::<D>(&image)?;
        check_size::<D>(&context, bytes, ErrorCode::InvalidImageSize)?;
        host.map_or(Ok(()), |host| check_host::<D>(flags, host, bytes))?;
        let storage = Storage::image(context.own()?, flags, (image, bytes), host)?;
        if let Some(host) = host.filter(|_| D::PLACEMENT != Placement::Host) {
            storage.write_pixels(&image, host)?;
        }
        Ok(Owned::new(Mem::new(flags, Arc::new(storage), None, bytes, What::Image(image))))
    }
    fn mem_buffer_create(
        context: Borrowed<'_, Context<D>>,
        flags: ur_mem_flags_t,
        size: usize,
        properties: Option<&ur_buffer_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        check_size::<D>(&context, size, ErrorCode::InvalidBufferSize)?;
        let host = properties.and_then(|p| UsmPtr::from_addr(p.pHost.addr()));
        let context = context.own()?;
        check_flags(flags)?;
        host.map_or(Ok(()), |host| check_host::<D>(flags, host, size))?;
        let (storage, home) = Storage::buffer(context, flags, size, host)?;
        Ok(Owned::new(Mem::new(flags, Arc::new(storage), home, size, What::Buffer)))
    }
    fn mem_buffer_partition(
        buffer: Borrowed<'_, Mem<D>>,
        flags: ur_mem_flags_t,
        _kind: ur_buffer_create_type_t,
        region: &ur_buffer_region_t,
    ) -> Result<Owned<Mem<D>>> {
        buffer.check_buffer()?;
        if let What::Part(_) = buffer.what {
            return Error::refuse(
                ErrorCode::InvalidMemObject,
                "a part of a buffer has no parts: partition the buffer itself",
            );
        }
        let flags = of_part(buffer.flags, flags)?;
        check_part(buffer.bytes, region)?;
        let storage = Arc::clone(buffer.storage());
        let mut part =
            Mem::new(flags, storage, buffer.home, region.size, What::Part(OnceLock::new()));
        (part.origin, part.is_lent) = (region.origin, buffer.is_lent);
        Ok(Owned::new(part))
    }
    fn mem_get_native_handle(
        mem: Borrowed<'_, Mem<D>>,
        device: Option<Borrowed<'_, Device<D>>>,
    ) -> Result<ur_native_handle_t> {
        device.map_or(Ok(()), |device| mem.context().check(device))?;
        let device = device.map(|device| device.own()).transpose()?;
        Mem::native(&mem, mem.now(device.as_ref())?)
    }
    fn mem_buffer_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        let given = properties.is_some_and(|p| p.isNativeHandleOwned);
        Mem::adopted(context.own()?, native_mem, given)
    }
    fn mem_image_create_with_native_handle(
        native_mem: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        format: &ur_image_format_t,
        desc: &ur_image_desc_t,
        properties: Option<&ur_mem_native_properties_t>,
    ) -> Result<Owned<Mem<D>>> {
        let owned = properties.is_some_and(|p| p.isNativeHandleOwned);
        let said = || described::<D>(*format, desc, false);
        Mem::adopted_image(context.own()?, native_mem, said, owned)
    }
    fn mem_get_info(
        mem: Borrowed<'_, Mem<D>>,
        name: ur_mem_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_mem_info_t::SIZE => answer.value(&mem.bytes),
            ur_mem_info_t::CONTEXT => answer.handle(mem.context()),
            ur_mem_info_t::REFERENCE_COUNT => answer.value(&mem.api_refs()),
            _ => Error::no_answer("a memory object", name),
        }
    }
    fn mem_image_get_info(
        mem: Borrowed<'_, Mem<D>>,
        name: ur_image_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        image_layout::info(mem.image()?, name, answer)
    }
}
