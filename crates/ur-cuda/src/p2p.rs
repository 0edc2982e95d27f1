//! Access of devices to each other's memory.
use super::DriverDevice;
use super::{
    Family,
    driver::Dialect,
    native::device::{self as native, PeerAttribute},
};
use std::sync::Arc;
use ur_hal::{Reach, ReachesPeers, Result};

impl<D: Dialect> ReachesPeers for Family<D> {
    fn reach(device: &Arc<DriverDevice<D>>, peer: &Arc<DriverDevice<D>>) -> Result<Reach> {
        let (from, to) = (device.number(), peer.number());
        let has = |what| Ok::<_, ur_hal::Error>(native::peer_attribute::<D>(what, from, to)? != 0);
        Ok(match () {
            () if from == to => Reach::Atomics,
            () if !has(PeerAttribute::Access)? => Reach::None,
            () if has(PeerAttribute::Atomics)? => Reach::Atomics,
            () => Reach::Memory,
        })
    }
    fn set_reach(
        device: &Arc<DriverDevice<D>>,
        peer: &Arc<DriverDevice<D>>,
        on: bool,
    ) -> Result<()> {
        let entered = device.enter()?;
        match on {
            true => entered.reach(peer.context()?)?,
            false => entered.leave(peer.context()?)?,
        }
        D::statics().memory.get().peers.switch(device, peer, on)
    }
}
