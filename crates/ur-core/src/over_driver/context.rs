//! The entries of contexts.
use super::{
    OverDriver,
    objects::{Context, Contexts, Device, DriverDevice},
    own_handle,
};
use ur_adapter::{
    api::ContextApi,
    callback::ContextDeleter,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Owned},
};
use ur_hal::{Adopted, NativeHandle, NativeKind, NativeObject};
use ur_sys::*;

fn of_driver<D: Contexts>(devices: &[Owned<Device<D>>]) -> Vec<DriverDevice<D>> {
    devices.iter().map(|one| one.driver().clone()).collect()
}

impl<D: Contexts> ContextApi for OverDriver<D> {
    fn context_create(
        devices: &[Borrowed<'_, Device<D>>],
        _properties: Option<&ur_context_properties_t>,
    ) -> Result<Owned<Context<D>>> {
        let Some(first) = devices.first() else {
            return Error::refuse(ErrorCode::InvalidValue, "a context needs a device");
        };
        if devices.iter().any(|one| !one.platform.same(&first.platform)) {
            let why = "devices of different drivers share no context: make one for each platform";
            return Error::refuse(ErrorCode::InvalidDevice, why);
        }
        let devices = Borrowed::own_all(devices)?;
        Ok(Context::new(D::open(&of_driver(&devices))?, devices))
    }
    fn context_get_info(
        context: Borrowed<'_, Context<D>>,
        name: ur_context_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_context_info_t as I;
        match name {
            I::NUM_DEVICES => answer.value(&(context.devices().len() as u32)),
            I::DEVICES => answer.handles(context.devices().iter().map(|one| &**one)),
            I::REFERENCE_COUNT => answer.value(&context.api_refs()),
            I::USM_MEMCPY2D_SUPPORT | I::USM_FILL2D_SUPPORT => answer.bool(true),
            _ => Error::no_answer("a context", name),
        }
    }
    fn context_get_native_handle(context: Borrowed<'_, Context<D>>) -> Result<ur_native_handle_t> {
        match D::HAS_HANDLES {
            true => {
                Ok(D::native(NativeObject::Context(&**context.driver()))?.0 as ur_native_handle_t)
            }
            false => own_handle::of(&context),
        }
    }
    fn context_create_with_native_handle(
        native: ur_native_handle_t,
        _adapter: Borrowed<'_, D::Adapter>,
        devices: &[Borrowed<'_, Device<D>>],
        properties: Option<&ur_context_native_properties_t>,
    ) -> Result<Owned<Context<D>>> {
        if !D::HAS_HANDLES {
            let context: Owned<Context<D>> = own_handle::find(native)?;
            devices.iter().try_for_each(|device| context.check(*device))?;
            return Ok(context);
        }
        if native == 0 {
            return Error::refuse(ErrorCode::InvalidNullHandle, "the native context is null");
        }
        let named = of_driver(&Borrowed::own_all(devices)?);
        let handle = (NativeKind::Context, NativeHandle(native as u64));
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let Adopted::Context(driver, devices) = D::adopt(&named, None, handle, is_owned)? else {
            return Err(ErrorCode::InvalidValue.into()); // the driver returned another kind of object
        };
        let devices = devices.iter().map(Device::of).collect::<Result<_>>()?;
        Ok(Context::new(driver, devices))
    }
    fn context_set_extended_deleter(
        context: Borrowed<'_, Context<D>>,
        deleter: ContextDeleter,
    ) -> Result<()> {
        context.deleters.lock()?.push(deleter);
        Ok(())
    }
}
