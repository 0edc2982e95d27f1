//! Access of devices to each other's memory. The driver switches it on by itself, so that what C
//! switches is kept as C's wish, and checked.
use super::{Device, LevelZero, native::device as native};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};
use ur_adapter::{
    api::UsmP2pExpApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Borrowed,
};
use ur_sys::ur_exp_peer_info_t;
use ze_sys::*;

/// Whether one device reaches the memory of another; asked once a pair.
///
/// # Errors
/// The driver's own.
pub fn can_access(from: &Device, peer: &Device) -> Result<bool> {
    static KNOWN: Mutex<Option<HashMap<(usize, usize), bool>>> = Mutex::new(None);
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let pair = (from.raw().addr(), peer.raw().addr());
    if from.raw() == peer.raw() {
        return Ok(true);
    }
    let known = lock().as_ref().and_then(|known| known.get(&pair).copied());
    if let Some(known) = known {
        return Ok(known);
    }
    let can = native::can_access(from.raw(), peer.raw())?;
    lock().get_or_insert_default().insert(pair, can);
    Ok(can)
}

/// # Errors
/// `INVALID_OPERATION` where no link leads from one to the other.
fn check(from: &Device, peer: &Device) -> Result<()> {
    match can_access(from, peer)? {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::InvalidOperation,
            "these devices cannot reach each other's memory: copy by way of the host, or ask \
             urUsmP2PPeerAccessGetInfoExp first",
        )),
    }
}

impl UsmP2pExpApi for LevelZero {
    /// The driver has it enabled wherever it is possible.
    fn usm_p2p_enable_peer_access_exp(
        command_device: Borrowed<'_, Device>,
        peer_device: Borrowed<'_, Device>,
    ) -> Result<()> {
        check(&command_device, &peer_device)
    }
    /// Nothing is lost by what the driver leaves enabled.
    fn usm_p2p_disable_peer_access_exp(
        command_device: Borrowed<'_, Device>,
        peer_device: Borrowed<'_, Device>,
    ) -> Result<()> {
        check(&command_device, &peer_device)
    }
    fn usm_p2p_peer_access_get_info_exp(
        command_device: Borrowed<'_, Device>,
        peer_device: Borrowed<'_, Device>,
        name: ur_exp_peer_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let flag = match name {
            ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT => None,
            ur_exp_peer_info_t::UR_PEER_ATOMICS_SUPPORT => {
                Some(ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS)
            }
            _ => {
                return Err(Error::new(
                    ErrorCode::UnsupportedEnumeration,
                    format!("a device of Level Zero has no answer to {name:?}"),
                ));
            }
        };
        let can = can_access(&command_device, &peer_device)?;
        let has = match flag {
            Some(flag) if can => {
                native::peer(command_device.raw(), peer_device.raw())?.flags & flag != 0
            }
            _ => can,
        };
        answer.value(&i32::from(has))
    }
}
