//! A device in use: what memory, queues and events belong to.
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
    /// Where host waits put their markers: out of order, so that none holds up another.
    waits: OnceLock<ffi::Queue>,
    patience_ms: AtomicU64,
}

/// How long a wait goes on unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

impl Context {
    /// Takes a device in use.
    ///
    /// # Errors
    /// What the adapter said.
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
    /// An event that queues can signal again and again, within this process. A fresh one counts as complete.
    ///
    /// # Errors
    /// What the adapter said.
    pub fn create_event(&self) -> Result<Event> {
        Ok(Event::created(self, ffi::Event::reusable(self.raw(), false)?, false))
    }
    /// The same for several processes: it can be [shared](Event::share).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the device shares no events; what the adapter said
    /// otherwise.
    pub fn create_shared_event(&self) -> Result<Event> {
        Ok(Event::created(self, ffi::Event::reusable(self.raw(), true)?, true))
    }
    /// Offers `bytes` from `address` on, in device memory that somebody else allocated (PyTorch, CuPy, the driver's own
    /// calls), to other processes of this user. `keep` is held as long as the export: let it own the memory.
    ///
    /// # Errors
    /// [`ErrorKind::Length`](crate::ErrorKind::Length) if the allocation ends before; what the adapter said, if the
    /// address is in no allocation that it knows or may share.
    pub fn share_foreign(
        &self,
        address: usize,
        bytes: usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Export<Buffer<u8>>> {
        self.share_foreign_as_far(address, |_| bytes, keep)
    }
    /// As [`share_foreign`](Self::share_foreign), of as many bytes as `choose` returns, which is called with how many there
    /// are from `address` to the end of the allocation: one export then serves all that is in it.
    ///
    /// # Errors
    /// As there.
    pub fn share_foreign_as_far(
        &self,
        address: usize,
        choose: impl FnOnce(usize) -> usize,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Export<Buffer<u8>>> {
        let exported = ffi::Exported::foreign(self.raw(), address, keep)?;
        let most = match ur_ipc::length_named_by(exported.bytes()) {
            Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
            None => ffi::Memory::reach_of(self.raw(), address)?, // of an adapter that has its own handles
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
    /// The unit, in bytes, in which [`PhysicalMemory`](crate::PhysicalMemory) is made.
    ///
    /// # Errors
    /// What the adapter said.
    pub fn granularity(&self) -> Result<usize> {
        self.inner.raw.granularity()
    }
    /// How long waits and blocking transfers go on before they give up: a minute, unless changed. Another process
    /// that never signals makes them wait so long and no longer.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.inner.patience_ms.load(Ordering::Relaxed)) // alone: orders nothing
    }
    /// Changes [`patience`](Self::patience), for this context and its clones.
    pub fn set_patience(&self, patience: Duration) {
        self.inner.patience_ms.store(wait::millis(patience), Ordering::Relaxed); // alone: orders nothing
    }
    /// An event for what `event` stands for now, which later signals leave alone.
    pub(crate) fn capture(&self, event: &ffi::Event) -> Result<Arc<ffi::Event>> {
        let waits = match self.inner.waits.get() {
            Some(waits) => waits,
            None => {
                let new = ffi::Queue::new(self.raw(), ffi::QueueKind::OutOfOrder)?;
                self.inner.waits.get_or_init(|| new)
            }
        };
        waits.marker(&[event])
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
