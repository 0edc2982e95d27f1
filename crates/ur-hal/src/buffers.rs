//! Buffers: where their memory is, and the driver's objects for them.
use crate::{Error, NativeHandle, Object, Placement, Range, Result, Types};

/// Memory of the application that is to be a buffer.
#[derive(Debug)]
pub struct AdoptedBuffer<B> {
    /// Its memory. Without [`HAS_BUFFERS`](MakesBuffers::HAS_BUFFERS) it ends where the driver's allocation ends.
    pub memory: Range,
    /// Whether the host can access it.
    pub is_hosts: bool,
    /// The driver's object, or what frees memory that the application gave away.
    pub object: Option<B>,
}
/// Buffers: memory at an address, or copies of it on several devices.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait MakesBuffers: Types {
    /// Whether devices use host memory of the application in place, once it is [pinned](crate::Pins).
    const USES_HOST_MEMORY: bool = true;
    /// Whether the driver has objects for buffers. If not, the native handle of a buffer is the address of its first byte.
    const HAS_BUFFERS: bool = false;
    /// The driver's object for a buffer, or what frees memory that the application gave away.
    type Buffer: Object;

    /// Where buffers of a context are.
    fn placement(context: &Self::Context) -> Result<Placement> {
        let _ = context;
        Ok(Placement::Host)
    }
    /// The most bytes that a buffer or an image can have.
    fn largest_buffer(context: &Self::Context) -> usize {
        let _ = context;
        isize::MAX as usize
    }
    /// Makes an object for memory that exists and stays valid while the object exists.
    fn buffer(context: &Self::Context, memory: Range) -> Result<Self::Buffer> {
        let _ = (context, memory);
        Error::unsupported("objects for buffers")
    }
    /// Makes an object for `bytes` of a buffer that begin at `offset`.
    fn part(whole: &Self::Buffer, offset: usize, bytes: usize) -> Result<Self::Buffer> {
        let _ = (whole, offset, bytes);
        Error::unsupported("objects for buffers")
    }
    /// The native handle of an object.
    fn buffer_handle(buffer: &Self::Buffer) -> Result<NativeHandle> {
        let _ = buffer;
        Error::unsupported("objects for buffers")
    }
    /// Finds the memory of a native handle that the application made. If it `is_owned`, it is freed with the object.
    ///
    /// Returns [`ErrorKind::InvalidMemory`](crate::ErrorKind::InvalidMemory) for a handle that the driver does not know.
    fn adopt_buffer(
        context: &Self::Context,
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<AdoptedBuffer<Self::Buffer>> {
        let _ = (context, handle, is_owned);
        Error::unsupported("buffers made of native handles")
    }
}
