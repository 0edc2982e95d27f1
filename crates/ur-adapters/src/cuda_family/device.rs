//! Devices: which there are, what each can do, and how its context is made current.
use super::{
    Family,
    driver::{Dialect, RawContext},
    native::{
        context::{self, Entered},
        device as native,
    },
};
use std::sync::OnceLock;
use ur_adapter::{
    api::{DeviceApi, DeviceExpApi},
    error::{Error, ErrorCode, Result},
    log,
    object::Owned,
};

/// What `ur_device_handle_t` points at.
#[derive(Debug)]
pub struct Device<D: Dialect> {
    number: i32,
    uuid: [u8; 16],
    context: OnceLock<RawContext>,
    _dialect: std::marker::PhantomData<fn() -> D>,
}

/// The devices of a dialect, found once a process.
#[derive(Debug)]
pub struct System<D: Dialect>(OnceLock<Found<D>>);
#[derive(Debug)]
struct Found<D: Dialect> {
    /// In which of a line of forked processes the driver was started.
    fork: u64,
    devices: Vec<Owned<Device<D>>>,
}
impl<D: Dialect> System<D> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
    fn found(&self) -> &Found<D> {
        self.0.get_or_init(|| {
            let devices = find::<D>().unwrap_or_else(|error| {
                log::say(ur_sys::ur_logger_level_t::WARN, &error);
                vec![]
            });
            Found { fork: ur_mapping::fork_count(), devices }
        })
    }
}
/// No driver and no device are no failure: then there are none.
fn find<D: Dialect>() -> Result<Vec<Owned<Device<D>>>> {
    if !D::driver().is_there() {
        return Ok(vec![]);
    }
    context::init::<D>()?;
    native::all::<D>()?
        .into_iter()
        .map(|number| {
            let (uuid, context) = (native::uuid::<D>(number)?, OnceLock::new());
            let _dialect = std::marker::PhantomData;
            Ok(Owned::new(Device { number, uuid, context, _dialect }))
        })
        .collect()
}
/// Every device that this process may see, in the driver's order. Starts the driver.
pub fn all<D: Dialect>() -> &'static [Owned<Device<D>>] {
    &D::statics().system.found().devices
}
/// # Errors
/// `UNINITIALIZED` in a child that was forked after the driver was started: it does not work there.
pub fn check_fork<D: Dialect>() -> Result<()> {
    match D::statics().system.found().fork == ur_mapping::fork_count() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::Uninitialized,
            format!(
                "{} was started before this process was forked and does not work in the child: fork \
                 first, or start another program",
                D::NAME
            ),
        )),
    }
}

impl<D: Dialect> Device<D> {
    /// The driver's number of it: `CUdevice`. Never sent to another process.
    pub fn number(&self) -> i32 {
        self.number
    }
    /// Its UUID, the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }
    /// Its primary context, retained at first use.
    ///
    /// # Errors
    /// The driver's own; `UNINITIALIZED` in a forked child.
    pub fn context(&self) -> Result<RawContext> {
        check_fork::<D>()?;
        if let Some(context) = self.context.get() {
            return Ok(*context);
        }
        let retained = context::retain_primary::<D>(self.number)?;
        Ok(*self.context.get_or_init(|| retained))
    }
    /// Makes its primary context current until what is returned is dropped.
    ///
    /// # Errors
    /// As for [`Device::context`].
    pub fn enter(&self) -> Result<Entered<D>> {
        Entered::enter(self.context()?)
    }
    /// One of the driver's attributes, by its number.
    ///
    /// # Errors
    /// The driver's own.
    pub fn attribute(&self, attribute: i32) -> Result<i32> {
        check_fork::<D>()?;
        native::attribute::<D>(self.number, attribute)
    }
}
impl<D: Dialect> DeviceApi for Family<D> {}
impl<D: Dialect> DeviceExpApi for Family<D> {}
