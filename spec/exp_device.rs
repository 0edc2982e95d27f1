//! Device (experimental). Read by `cargo xtask generate`; never compiled.

#[table(DeviceExp, "DeviceExp")]
extern "C" {
    /// Blocks until all work submitted to the device has finished.
    #[blocks]
    #[errors(InvalidDevice)]
    fn urDeviceWaitExp(device: Device);
}
