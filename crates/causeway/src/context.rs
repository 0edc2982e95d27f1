//! Contexts: a device in use, to which memory, queues and events belong.
use crate::{
    Buffer, Device, Error, ErrorKind, Event, Export, Result, ffi, ticket::Contents,
    ticket::ValueType, wait,
};
use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A device in use. Memory, queues and events belong to one context. Clones are the same context.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Buffer, Context, Device, Queue};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let buffer = Buffer::<f32>::new(&context, 1024)?;
/// # drop((queue, buffer));
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}
struct Inner {
    raw: Arc<ffi::Context>,
    /// The queue for the markers of host waits. It is out of order, so that no marker delays another.
    waits: OnceLock<ffi::Queue>,
    patience_ms: AtomicU64,
}

/// The default of [`Context::patience`].
const PATIENCE: Duration = Duration::from_secs(60);

impl Context {
    /// Makes a context for a device.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn new(device: &Device) -> Result<Self> {
        let raw = ffi::Context::new(device.raw)?;
        let patience_ms = AtomicU64::new(wait::millis(PATIENCE));
        Ok(Self { inner: Arc::new(Inner { raw, waits: OnceLock::new(), patience_ms }) })
    }
    pub(crate) fn raw(&self) -> &Arc<ffi::Context> {
        &self.inner.raw
    }
    /// The device.
    pub fn device(&self) -> Device {
        Device { raw: self.inner.raw.device() }
    }
    /// Makes an event that queues of this process can signal repeatedly. It is complete until it is first signalled.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn create_event(&self) -> Result<Event> {
        Ok(Event::created(self, ffi::Event::reusable(self.raw(), false)?, false))
    }
    /// Like [`create_event`](Self::create_event), but the event can be [shared](Event::share) with other processes.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device cannot share events; otherwise the
    /// adapter's error.
    pub fn create_shared_event(&self) -> Result<Event> {
        Ok(Event::created(self, ffi::Event::reusable(self.raw(), true)?, true))
    }
    /// Shares `bytes` of device memory from `address` on, which was allocated by other code (PyTorch, CuPy or the
    /// driver's own functions), with other processes of this user. `keep` is held as long as the export exists: let it
    /// own the memory.
    ///
    /// # Errors
    /// [`ErrorKind::Length`](crate::ErrorKind::Length) if the allocation ends before; otherwise the adapter's error,
    /// for example if the address is in no allocation that it knows or can share.
    pub fn share_foreign(
        &self,
        address: usize,
        bytes: usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Export<Buffer<u8>>> {
        self.share_foreign_as_far(address, |_| bytes, keep)
    }
    /// Like [`share_foreign`](Self::share_foreign), for as many bytes as `choose` returns. It is called with the number
    /// of bytes from `address` to the end of the allocation, so that one export can serve everything in the allocation.
    ///
    /// # Errors
    /// As [`share_foreign`](Self::share_foreign).
    pub fn share_foreign_as_far(
        &self,
        address: usize,
        choose: impl FnOnce(usize) -> usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Export<Buffer<u8>>> {
        let exported = ffi::Exported::foreign(self.raw(), address, keep)?;
        let most = match ur_ipc::length_named_by(exported.bytes()) {
            Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
            None => ffi::Memory::reach_of(self.raw(), address)?, // a handle that is not a ticket
        };
        let bytes = choose(most);
        if bytes > most {
            let sentence = format!(
                "{bytes} bytes from {address:#x} on cannot be shared: the allocation ends {most} bytes behind that"
            );
            return Err(Error::new(ErrorKind::Length, sentence));
        }
        let contents = Contents { bytes: bytes as u64, of: ValueType::of::<u8>() };
        Ok(Export::of_memory(exported, contents))
    }
    /// The unit in bytes in which [`PhysicalMemory`](crate::PhysicalMemory) is allocated.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn granularity(&self) -> Result<usize> {
        self.inner.raw.granularity()
    }
    /// The time after which waits and blocking transfers give up: a minute, unless changed. If another process never
    /// signals, they end with an error after this time.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.inner.patience_ms.load(Ordering::Relaxed)) // orders nothing
    }
    /// Changes [`patience`](Self::patience), for this context and its clones.
    pub fn set_patience(&self, patience: Duration) {
        self.inner.patience_ms.store(wait::millis(patience), Ordering::Relaxed); // orders nothing
    }
    /// An event for what `event` stands for now, which later signals do not change.
    pub(crate) fn capture(&self, event: &ffi::Event) -> Result<Arc<ffi::Event>> {
        let waits = match self.inner.waits.get() {
            Some(waits) => waits,
            None => {
                let new = ffi::Queue::new(self.raw(), ffi::QueueKind::OutOfOrder)?;
                self.inner.waits.get_or_init(|| new)
            }
        };
        match waits.marker(&[event]) {
            // A queue reports once that an earlier wait in it failed. Whoever made that wait was told; this one is for another event,
            // or fails again.
            Err(error) if error.kind() == ErrorKind::PeerGone => waits.marker(&[event]),
            marker => marker,
        }
    }
    /// Whether `other` is this context.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.device()).finish()
    }
}
