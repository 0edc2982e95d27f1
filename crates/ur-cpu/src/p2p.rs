//! Access of devices to each other's memory. All devices of this adapter are the host's processor
//! or parts of it: each reaches all memory there is, always. So enabling and disabling change
//! nothing and succeed, as they would on any device that has no switch for it.
use super::{Cpu, Device};
use ur_adapter::{
    api::UsmP2pExpApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Borrowed,
};
use ur_sys::ur_exp_peer_info_t;

impl UsmP2pExpApi for Cpu {
    fn usm_p2p_enable_peer_access_exp(
        _command_device: Borrowed<'_, Device>,
        _peer_device: Borrowed<'_, Device>,
    ) -> Result<()> {
        Ok(())
    }
    fn usm_p2p_disable_peer_access_exp(
        _command_device: Borrowed<'_, Device>,
        _peer_device: Borrowed<'_, Device>,
    ) -> Result<()> {
        Ok(())
    }
    fn usm_p2p_peer_access_get_info_exp(
        _command_device: Borrowed<'_, Device>,
        _peer_device: Borrowed<'_, Device>,
        name: ur_exp_peer_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT
            | ur_exp_peer_info_t::UR_PEER_ATOMICS_SUPPORT => answer.value(&1_i32),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a CPU has no answer to {name:?}"),
            )),
        }
    }
}
