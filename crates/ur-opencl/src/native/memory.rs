//! Memory of the driver's own, where devices do not reach the system's.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::{Own, number};
use crate::{cl::*, driver::*};
use std::{
    ffi::c_void,
    ptr::{NonNull, null, with_exposed_provenance, with_exposed_provenance_mut},
    sync::Arc,
};
use ur_hal::{Address, Error, ErrorKind, KnownMemory, MemoryKind, MemoryRequest, Range, Result};

/// Bytes of the largest type of OpenCL C, sixteen eight-byte numbers.
const LARGEST_TYPE: usize = 128;

/// How memory comes to be that devices reach by its address; better ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// They reach the system's memory: all that there is is ours.
    System,
    /// `cl_intel_unified_shared_memory`.
    Usm,
    /// Fine-grained shared virtual memory of buffers.
    Svm,
    /// Nothing has an address.
    None,
}
/// Memory that a driver gave. Dropped, it goes back.
#[derive(Debug)]
pub struct Given {
    at: NonNull<c_void>,
    /// Bytes from there to where it begins for others.
    ahead: usize,
    bytes: usize,
    extensions: Arc<Extensions>,
    is_svm: bool,
    context: Arc<Own<RawContext>>,
}
// SAFETY: memory may be used and freed by any thread.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}
impl Given {
    /// Memory for a device, by the driver's own functions.
    ///
    /// # Errors
    /// `OutOfDeviceMemory`; `Unsupported` where nothing has an address.
    pub fn new(
        reach: Reach,
        extensions: &Arc<Extensions>,
        context: &Arc<Own<RawContext>>,
        device: RawDevice,
        MemoryRequest { kind, bytes, align, .. }: MemoryRequest,
    ) -> Result<Self> {
        let (raw, of, align) = (context.raw(), null(), align as u32);
        // SAFETY: a live context and device of it; without properties.
        let made = || match kind {
            // SAFETY: as said above.
            MemoryKind::Device => unsafe { extensions.device_alloc(raw, device, of, bytes, align) },
            // SAFETY: as said above.
            MemoryKind::Host => unsafe { extensions.host_alloc(raw, of, bytes, align) },
            // SAFETY: as said above.
            MemoryKind::Managed => unsafe {
                extensions.shared_alloc(raw, device, of, bytes, align)
            },
        };
        let (at, ahead) = match reach {
            Reach::Usm => (made()?, 0),
            Reach::Svm => {
                let flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
                let none = || {
                    let why = format!("the device has no {bytes} bytes left: free some");
                    Error::new(ErrorKind::OutOfDeviceMemory, why)
                };
                // Drivers know alignments up to that of their largest type alone, and answer null to others.
                let align = align as usize;
                let room = bytes.checked_add(if align > LARGEST_TYPE { align } else { 0 });
                let (room, known) = (room.ok_or_else(none)?, align.min(LARGEST_TYPE) as u32);
                // SAFETY: a live context.
                let at = unsafe { extensions.svm_alloc(raw, flags, room, known) };
                let at = at.and_then(NonNull::new).ok_or_else(none)?;
                let start = at.as_ptr().expose_provenance();
                (at, start.next_multiple_of(align.max(1)) - start)
            }
            Reach::System | Reach::None => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "this device has neither unified shared memory nor fine-grained shared virtual memory",
                ));
            }
        };
        let (extensions, is_svm) = (Arc::clone(extensions), reach == Reach::Svm);
        Ok(Self { at, ahead, bytes, extensions, is_svm, context: Arc::clone(context) })
    }
    /// Where it is.
    pub fn range(&self) -> Range {
        let at = Address::new(self.at.as_ptr().expose_provenance() + self.ahead);
        at.and_then(|at| Range::new(at, self.bytes).ok()).expect("memory has addresses")
    }
}
impl Drop for Given {
    fn drop(&mut self) {
        if is_unusable() {
            return;
        }
        let (context, at) = (self.context.raw(), self.at.as_ptr());
        match self.is_svm {
            // SAFETY: ours, freed once; the core drops it when no command uses it.
            false => unsafe { self.extensions.free(context, at) }.let_go(),
            // SAFETY: as above.
            true => _ = unsafe { self.extensions.svm_free(context, at) },
        }
    }
}
/// What is at an address that others allocated by `cl_intel_unified_shared_memory`.
pub fn recognise(
    extensions: &Extensions,
    context: RawContext,
    at: Address,
) -> Option<KnownMemory<std::convert::Infallible>> {
    let pointer = with_exposed_provenance::<c_void>(at.get());
    let ask = |name| {
        // SAFETY: a live context; addresses are looked up and not followed.
        let told = super::own::bytes(|size, to, length| unsafe {
            extensions.get_mem_alloc_info(context, pointer, name, size, to, length)
        });
        told.ok().map(|bytes| number(&bytes) as usize)
    };
    let kind = match u32::try_from(ask(CL_MEM_ALLOC_TYPE_INTEL)?).ok()? {
        CL_MEM_TYPE_DEVICE_INTEL => MemoryKind::Device,
        CL_MEM_TYPE_HOST_INTEL => MemoryKind::Host,
        CL_MEM_TYPE_SHARED_INTEL => MemoryKind::Managed,
        _ => return None,
    };
    let base = Address::new(ask(CL_MEM_ALLOC_BASE_PTR_INTEL)?)?;
    let range = Range::new(base, ask(CL_MEM_ALLOC_SIZE_INTEL)?).ok()?;
    Some(KnownMemory { range, kind, device: None })
}
/// A memory object over memory at an address, which stays where it is.
///
/// # Errors
/// The driver's own.
pub fn buffer_over(context: RawContext, at: Address, bytes: usize) -> Result<Own<RawMem>> {
    let (flags, at) = (CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, at.get());
    // SAFETY: a live context; whoever has the object keeps the memory, as it does that of the buffer.
    let made =
        unsafe { driver().create_buffer(context, flags, bytes, with_exposed_provenance_mut(at)) };
    made.map(Own::given)
}
/// A memory object over a part of another one, which it keeps.
///
/// # Errors
/// The driver's own, as for a part that is not aligned as the device needs it.
pub fn buffer_part(whole: RawMem, origin: usize, bytes: usize) -> Result<Own<RawMem>> {
    let (as_whole, kind, region) = (0, CL_BUFFER_CREATE_TYPE_REGION, [origin, bytes]);
    // SAFETY: live; the region is of the kind that is said.
    unsafe { driver().create_sub_buffer(whole, as_whole, kind, &raw const region) }.map(Own::given)
}
