//! Device (experimental). Read by `cargo xtask generate`; never compiled.

#[table(DeviceExp, "DeviceExp")]
extern "C" {
    #[id = 293]
    #[blocks]
    #[errors(InvalidDevice)]
    fn urDeviceWaitExp(device: Device);
}
