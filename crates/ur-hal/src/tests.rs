//! A driver without devices: the result of every method that a driver does not implement.
use super::*;
use std::convert::Infallible;

/// A driver that has no devices and no features.
#[derive(Debug)]
pub(crate) struct Nothing;
impl Types for Nothing {
    type Device = ();
    type Context = ();
    type Allocation = Infallible;
    type Reservation = Infallible;
    type Physical = Infallible;
    type Stream = Infallible;
    type Point = Infallible;
    type Module = Infallible;
    type Function = Infallible;
    type Image = Infallible;
    type Sampler = Infallible;
    type Graph = Infallible;
}
impl Modules for Nothing {
    type Code = Infallible;
    type Target = ();
}
impl Allocates for Nothing {
    const LARGEST_ALIGNMENT: usize = 1;
    fn memory_size((): &()) -> Result<usize> {
        Ok(0)
    }
    fn allocate((): &(), (): &(), _: MemoryRequest) -> Result<Infallible> {
        Err(ErrorKind::OutOfDeviceMemory.into())
    }
    fn zero((): &(), (): &(), _: Range) -> Result<()> {
        Error::unsupported("memory")
    }
    fn copy((): &(), _: Address, _: Address, _: usize) -> Result<()> {
        Error::unsupported("memory")
    }
}
impl Pins for Nothing {
    type Pinned = Infallible;
    fn pin((): &(), _: Range, _: Access) -> Result<Infallible> {
        Error::unsupported("pinned memory")
    }
}
impl ReachesPeers for Nothing {}
impl MakesBuffers for Nothing {
    type Buffer = Infallible;
}
impl MakesImages for Nothing {}
impl MakesSamplers for Nothing {}
impl VirtualMemory for Nothing {}
impl Shares for Nothing {
    type Opened = Infallible;
    type Foreign = Infallible;
}
impl Streams for Nothing {
    type ArrivedPoint = Infallible;
    fn finish_device((): &()) -> Result<()> {
        Ok(())
    }
    fn event_sharing((): &()) -> EventSharing {
        EventSharing::None
    }
    fn stream((): &(), (): &(), _: StreamRequest) -> Result<Infallible> {
        Err(ErrorKind::OutOfResources.into())
    }
    fn submit(stream: &Infallible, _: &Submission<'_, Self>) -> Result<Option<Infallible>> {
        match *stream {}
    }
    fn is_idle(stream: &Infallible) -> Result<bool> {
        match *stream {}
    }
    fn finish(stream: &Infallible) -> Result<()> {
        match *stream {}
    }
    fn status(point: &Infallible) -> Result<Status> {
        match *point {}
    }
    fn wait(point: &Infallible, _: Option<std::time::Instant>) -> Result<bool> {
        match *point {}
    }
    fn times(point: &Infallible) -> Result<Option<Times>> {
        match *point {}
    }
}
impl OpensDevices for Nothing {
    const NAME: &'static str = "nothing";
    fn devices() -> Result<Vec<()>> {
        Ok(vec![])
    }
    fn platform((): &()) -> Result<PlatformFacts> {
        Err(ErrorKind::InvalidDevice.into())
    }
    fn uuid((): &()) -> Result<[u8; 16]> {
        Err(ErrorKind::InvalidDevice.into())
    }
    fn clocks((): &()) -> Result<Clocks> {
        Err(ErrorKind::InvalidDevice.into())
    }
    fn open(_: &[()]) -> Result<()> {
        Ok(())
    }
}
impl NativeHandles for Nothing {}
impl Graphs for Nothing {}
impl DescribesDevices for Nothing {
    fn kind((): &()) -> DeviceKind {
        DeviceKind::Cpu
    }
    fn facts((): &()) -> Result<DeviceFacts> {
        Err(ErrorKind::InvalidDevice.into())
    }
}
impl PartitionsDevices for Nothing {}

/// Compiles only if a type with all the traits is a driver.
const _: fn() = is_driver::<Nothing>;
fn is_driver<D: Driver>() {}

#[test]
fn verbs_that_a_driver_leaves_out_answer_unsupported() {
    let range = Range::new(Address::new(4096).unwrap(), 1).unwrap();
    let kinds = [
        Nothing::pin(&(), range, Access::Read).unwrap_err().kind(),
        Nothing::reserve(&(), None, 1, 1).unwrap_err().kind(),
        Nothing::graph(&(), &()).unwrap_err().kind(),
        Nothing::build(&(), &[], false).0.unwrap_err().kind(),
        Nothing::native(NativeObject::Device(&())).unwrap_err().kind(),
        Nothing::home(&(), [0; 16]).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Unsupported; 6]);
    assert!(
        Nothing::reusable(&(), &(), false).unwrap().is_none(),
        "the core keeps the latest signal"
    );
    assert!(Nothing::recognise(&(), range.start()).unwrap().is_none(), "it knows of no memory");
    assert_eq!(Nothing::reach(&(), &()).unwrap(), Reach::Atomics, "a device reaches itself");
}
