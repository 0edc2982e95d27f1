//! Access of devices to each other's memory.
use super::{
    Device, Family,
    driver::Dialect,
    native::device::{self as native, PeerAttribute},
};
use ur_adapter::object::Owned;
use ur_hal::{Reach, ReachesPeers, Result};

impl<D: Dialect> ReachesPeers for Family<D> {
    fn reach(device: &Owned<Device<D>>, peer: &Owned<Device<D>>) -> Result<Reach> {
        let (from, to) = (device.number(), peer.number());
        let has = |what| Ok::<_, ur_hal::Error>(native::peer_attribute::<D>(what, from, to)? != 0);
        Ok(match () {
            () if from == to => Reach::Atomics,
            () if !has(PeerAttribute::Access)? => Reach::None,
            () if has(PeerAttribute::Atomics)? => Reach::Atomics,
            () => Reach::Memory,
        })
    }
    fn set_reach(device: &Owned<Device<D>>, peer: &Owned<Device<D>>, on: bool) -> Result<()> {
        let entered = device.enter()?;
        match on {
            true => entered.reach(peer.context()?)?,
            false => entered.leave(peer.context()?)?,
        }
        Ok(D::statics().memory.get().peers.switch(device, peer, on)?)
    }
}
