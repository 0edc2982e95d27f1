//! Access of devices to each other's memory, switched on and off by C. What of it the adapter itself
//! needs, for memory that it shares, is set where that memory is mapped.
use super::{
    Device, Family,
    driver::Dialect,
    native::device::{self as native, PeerAttribute},
};
use ur_adapter::{
    api::UsmP2pExpApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Borrowed,
};
use ur_sys::ur_exp_peer_info_t;

/// # Errors
/// `INVALID_OPERATION` where no link leads from one to the other.
fn check<D: Dialect>(from: &Device<D>, peer: &Device<D>) -> Result<()> {
    match native::can_access::<D>(from.number(), peer.number())? {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::InvalidOperation,
            "these devices cannot reach each other's memory: copy by way of the host, or ask \
             urUsmP2PPeerAccessGetInfoExp first",
        )),
    }
}

impl<D: Dialect> UsmP2pExpApi for Family<D> {
    /// A device reaches its own memory anyway; what is enabled already stays so.
    fn usm_p2p_enable_peer_access_exp(
        command_device: Borrowed<'_, Device<D>>,
        peer_device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        if command_device.same(&peer_device) {
            return Ok(());
        }
        check(&command_device, &peer_device)?;
        let on = command_device.enter()?;
        on.reach(peer_device.context()?)?;
        D::statics().memory.get().peers.switch(&command_device, &peer_device, true)
    }
    /// What is not enabled stays so.
    fn usm_p2p_disable_peer_access_exp(
        command_device: Borrowed<'_, Device<D>>,
        peer_device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        if command_device.same(&peer_device) {
            return Ok(());
        }
        let on = command_device.enter()?;
        on.leave(peer_device.context()?)?;
        D::statics().memory.get().peers.switch(&command_device, &peer_device, false)
    }
    fn usm_p2p_peer_access_get_info_exp(
        command_device: Borrowed<'_, Device<D>>,
        peer_device: Borrowed<'_, Device<D>>,
        name: ur_exp_peer_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let attribute = match name {
            ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT => PeerAttribute::Access,
            ur_exp_peer_info_t::UR_PEER_ATOMICS_SUPPORT => PeerAttribute::Atomics,
            _ => {
                return Err(Error::new(
                    ErrorCode::UnsupportedEnumeration,
                    format!("a device of {} has no answer to {name:?}", D::NAME),
                ));
            }
        };
        if command_device.same(&peer_device) {
            return answer.value(&1_i32);
        }
        let (from, peer) = (command_device.number(), peer_device.number());
        answer.value(&native::peer_attribute::<D>(attribute, from, peer)?)
    }
}
