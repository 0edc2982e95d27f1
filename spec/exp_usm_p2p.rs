//! Usm p2p (experimental). Read by `cargo xtask generate`; never compiled.

/// Lists what can be asked about two devices' link.
#[query(Device)]
enum ExpPeerInfo {
    UrPeerAccessSupport(i32) = 0,
    UrPeerAtomicsSupport(i32) = 1,
}

#[table(UsmP2pExp, "UsmP2PExp")]
extern "C" {
    /// Lets a device reach a peer device's memory directly.
    fn urUsmP2PEnablePeerAccessExp(command_device: Device, peer_device: Device);

    /// Stops a device from reaching a peer device's memory.
    fn urUsmP2PDisablePeerAccessExp(command_device: Device, peer_device: Device);

    /// Answers one query about access between two peer devices.
    #[error(UnsupportedEnumeration, "the adapter does not know the property asked for")]
    #[error(InvalidSize, prop_size == 0 && prop_value != null)]
    #[error(InvalidSize, "the given size is too small to hold the answer")]
    #[error(InvalidNullPointer, prop_size != 0 && prop_value == null)]
    #[error(InvalidNullPointer, prop_value == null && prop_size_ret == null)]
    fn urUsmP2PPeerAccessGetInfoExp(
        command_device: Device,
        peer_device: Device,
        prop_name: ExpPeerInfo,
        prop_size: usize,
        #[out] #[optional] #[answer(prop_name, prop_size)] prop_value: *mut c_void,
        #[out] #[optional] prop_size_ret: *mut usize,
    );
}
