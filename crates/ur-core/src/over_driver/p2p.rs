//! Peer access, which callers switch on and off. The access that the adapter itself needs, for memory that is shared,
//! is set where that memory is mapped.
use super::{OverDriver, objects::Device};
use ur_adapter::{
    api::UsmP2pExpApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Object},
};
use ur_hal::{Reach, ReachesPeers};
use ur_sys::ur_exp_peer_info_t;

/// A driver over which the core implements devices, and whose devices may access each other's memory.
pub trait HasPeers: super::Contexts + ReachesPeers {}
impl<D: super::Contexts + ReachesPeers> HasPeers for D {}

fn switch<D: HasPeers>(
    device: &Object<Device<D>>,
    peer: &Object<Device<D>>,
    on: bool,
) -> Result<()> {
    if !device.same(peer) {
        D::set_reach(device.driver(), peer.driver(), on)?;
    }
    Ok(())
}

impl<D: HasPeers> UsmP2pExpApi for OverDriver<D> {
    /// A device can always access its own memory. Has no effect if access is enabled already.
    fn usm_p2p_enable_peer_access_exp(
        command_device: Borrowed<'_, Device<D>>,
        peer_device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        if D::reach(command_device.driver(), peer_device.driver())? == Reach::None {
            let why = "these devices cannot reach each other's memory: copy by way of the host, or ask \
                       urUsmP2PPeerAccessGetInfoExp first";
            return Error::refuse(ErrorCode::InvalidOperation, why);
        }
        switch::<D>(&command_device, &peer_device, true)
    }
    /// Has no effect if access is not enabled.
    fn usm_p2p_disable_peer_access_exp(
        command_device: Borrowed<'_, Device<D>>,
        peer_device: Borrowed<'_, Device<D>>,
    ) -> Result<()> {
        switch::<D>(&command_device, &peer_device, false)
    }
    fn usm_p2p_peer_access_get_info_exp(
        command_device: Borrowed<'_, Device<D>>,
        peer_device: Borrowed<'_, Device<D>>,
        name: ur_exp_peer_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let reach = D::reach(command_device.driver(), peer_device.driver())?;
        let has = match name {
            ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT => reach != Reach::None,
            ur_exp_peer_info_t::UR_PEER_ATOMICS_SUPPORT => reach == Reach::Atomics,
            _ => return Error::no_answer("a pair of devices", name),
        };
        answer.value(&i32::from(has))
    }
}
