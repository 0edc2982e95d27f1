//! C handles. The only module that turns a handle into a reference, and back.
//!
//! A handle points at a slot of a per-kind slab whose memory is never returned to the system. So a
//! header can always be read, and a released handle is an error code until its slot is reused.
#![expect(unsafe_code, reason = "handles are pointers given to C")]
use crate::{
    error::{ErrorCode, Result},
    per_process::PerProcess,
};
use spin::{
    mutex::{SpinMutex, SpinMutexGuard},
    relax::Yield,
};
use std::{
    cell::UnsafeCell,
    collections::VecDeque,
    fmt,
    marker::PhantomData,
    mem::MaybeUninit,
    ops::Deref,
    ptr::{self, NonNull},
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};
use ur_sys::ur_dditable_t;

/// Whose driver is behind an object; the numbers are those of `ur_backend_t`.
#[repr(u16)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// `UR_BACKEND_LEVEL_ZERO`
    LevelZero = 1,
    /// `UR_BACKEND_OPENCL`
    OpenCl = 2,
    /// `UR_BACKEND_CUDA`
    Cuda = 3,
    /// `UR_BACKEND_HIP`
    Hip = 4,
    /// `UR_BACKEND_NATIVE_CPU`
    Cpu = 5,
    /// `UR_BACKEND_OFFLOAD`
    Offload = 0x100,
    /// The adapter without a device.
    Null = 0x7ffe,
    /// The adapter whose entries tests replace.
    Mock = 0x7fff,
}

impl Backend {
    /// All of them, each at its `index`.
    pub(crate) const ALL: [Self; 8] = [
        Self::LevelZero,
        Self::OpenCl,
        Self::Cuda,
        Self::Hip,
        Self::Cpu,
        Self::Offload,
        Self::Null,
        Self::Mock,
    ];
    /// Its place among all of them, for what there is once of each adapter.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::LevelZero => 0,
            Self::OpenCl => 1,
            Self::Cuda => 2,
            Self::Hip => 3,
            Self::Cpu => 4,
            Self::Offload => 5,
            Self::Null => 6,
            Self::Mock => 7,
        }
    }
    /// The one with this number.
    const fn of_number(number: u16) -> Option<Self> {
        let mut i = 0;
        while i < Self::ALL.len() {
            if Self::ALL[i] as u16 == number {
                return Some(Self::ALL[i]);
            }
            i += 1;
        }
        None
    }
}
const _: () = {
    let mut i = 0;
    while i < Backend::ALL.len() {
        assert!(Backend::ALL[i].index() == i);
        i += 1;
    }
};

/// What kind of object a handle names.
#[repr(u16)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the handle of the same name")]
pub enum Kind {
    Adapter = 1,
    Platform,
    Device,
    Context,
    Queue,
    Event,
    Program,
    Kernel,
    Sampler,
    Mem,
    PhysicalMem,
    UsmPool,
    ExternalMem,
    ExternalSemaphore,
    CommandBuffer,
    CommandBufferCommand,
    Graph,
    ExecutableGraph,
}

/// Whose object this is and of what kind. Checked on every entry, so a wrong or
/// released handle becomes an error code, not a wild read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(u64);
impl Tag {
    const FREE: Self = Self(0);
    /// The tag of `kind` objects of `backend`'s adapter.
    pub const fn new(backend: Backend, kind: Kind) -> Self {
        Self((0x5552_4f42 << 32) | ((backend as u64) << 16) | kind as u64)
    }
    /// Whose objects have this tag. Nobody's those of kinds that are never made.
    pub const fn backend(self) -> Option<Backend> {
        Backend::of_number((self.0 >> 16) as u16)
    }
    /// The number of its kind.
    pub(crate) const fn kind(self) -> u16 {
        self.0 as u16
    }
}

/// The Rust state behind one kind of handle.
pub trait Body: Send + Sync + Sized + 'static {
    /// What the header of every such object says.
    const TAG: Tag;
    /// What C hears of a handle that is not one of these.
    const INVALID: ErrorCode;
    /// Where such objects live.
    fn slab() -> &'static Slab<Self>;
    /// Whether C's references are counted. Where they are not, retaining and releasing do nothing,
    /// and the object is C's for good once it has been published: root devices, of which releases
    /// have no effect.
    fn is_counted(&self) -> bool {
        true
    }
    /// Whether an entry that waits for it alone returns at once. May look, and does not block. Then
    /// the entry need not hold it.
    fn is_settled(&self) -> bool {
        false
    }
}

/// The count of C's references to an object whose references are not counted. In the header, as a
/// handle that another thread is just releasing has no body to ask.
const UNCOUNTED: u32 = u32::MAX;

/// The start of every object. Layout is ABI: the loader dispatches through the first word.
#[repr(C)]
struct Header {
    table: &'static ur_dditable_t,
    tag: AtomicU64,
    /// C's references: what `*_INFO_REFERENCE_COUNT` reports.
    api_refs: AtomicU32,
    /// The runtime's references, and one for C while `api_refs` is not 0.
    owners: AtomicU32,
}

/// What a handle points at: one slot. Outside this module, reached only while it has an owner.
#[repr(C)]
pub struct Object<T> {
    header: Header,
    body: UnsafeCell<MaybeUninit<T>>,
}
// SAFETY: the body is written before the tag is set and dropped after its last owner; between, it is only read.
unsafe impl<T: Send + Sync> Sync for Object<T> {}
impl<T> Object<T> {
    /// What `*_INFO_REFERENCE_COUNT` reports.
    pub fn api_refs(&self) -> u32 {
        match self.header.api_refs.load(Relaxed) {
            UNCOUNTED => 1,
            count => count,
        }
    }
    /// Whether C may retain and release it without any effect.
    fn is_uncounted(&self) -> bool {
        self.header.api_refs.load(Relaxed) == UNCOUNTED
    }
    /// The handle C knows this object by, without giving it a reference.
    pub fn as_handle(&self) -> *mut Object<T> {
        ptr::from_ref(self).cast_mut()
    }
    /// Whether both are the same object.
    pub fn same(&self, other: &Object<T>) -> bool {
        ptr::eq(self, other)
    }
    const fn vacant(table: &'static ur_dditable_t) -> Self {
        let (tag, api_refs, owners) =
            (AtomicU64::new(Tag::FREE.0), AtomicU32::new(0), AtomicU32::new(0));
        let header = Header { table, tag, api_refs, owners };
        Self { header, body: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}
impl<T> Deref for Object<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `Owned` and `Borrowed` alone lend an `Object`, and both stand for a live body.
        unsafe { &*self.body.get().cast() }
    }
}

/// One reference more, if there is one: a count that reached 0 stays there.
fn raise(count: &AtomicU32) -> bool {
    count.fetch_update(Acquire, Relaxed, |n| n.checked_add(1).filter(|_| n != 0)).is_ok()
}
/// One reference fewer, if there is one; how many are left. The last sees what all others did.
fn lower(count: &AtomicU32) -> Option<u32> {
    count.fetch_update(AcqRel, Relaxed, |n| n.checked_sub(1)).ok().map(|n| n - 1)
}

/// Where the objects of one kind live. Slots are reused oldest first and `LATE` always stay
/// free: a released handle is an error for at least as many creations.
///
/// A forked child begins with slots of its own, since a thread that it does not have may hold its
/// parent's lock. What it releases of its parent's objects comes to its own slots.
pub struct Slab<T: 'static> {
    table: &'static ur_dditable_t,
    /// Taken for a few instructions at each making and release, so that its release is a mere store.
    slots: PerProcess<SpinMutex<Slots<T>, Yield>>,
}
struct Slots<T: 'static> {
    free: VecDeque<&'static Object<T>>,
    /// All that there are.
    blocks: Vec<&'static [Object<T>]>,
}
impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { free: VecDeque::new(), blocks: Vec::new() }
    }
}
impl<T> Slab<T> {
    /// How many creations a released handle is sure to stay an error for.
    pub const LATE: usize = 64;
    /// An empty slab whose objects dispatch through `table`.
    pub const fn new(table: &'static ur_dditable_t) -> Self {
        Self { table, slots: PerProcess::new() }
    }
    fn slots(&self) -> SpinMutexGuard<'_, Slots<T>> {
        self.slots.get().lock()
    }
    fn take(&self) -> &'static Object<T> {
        let mut slots = self.slots();
        if slots.free.len() <= Self::LATE {
            let block: Vec<_> = (0..=Self::LATE).map(|_| Object::vacant(self.table)).collect();
            let block: &[_] = block.leak();
            slots.free.extend(block);
            slots.blocks.push(block);
        }
        slots.free.pop_front().expect("more than LATE slots are free")
    }
    /// The slot at `address`, if one of these starts there. Reads nothing at `address`.
    fn slot_at(&self, address: usize) -> Option<&'static Object<T>> {
        let starts = |block: &[Object<T>]| address.checked_sub(block.as_ptr().addr());
        let slots = self.slots();
        slots.blocks.iter().find_map(|block| {
            let offset = starts(block)?;
            let slot = block.get(offset / size_of::<Object<T>>())?;
            (offset % size_of::<Object<T>>() == 0).then_some(slot)
        })
    }
}
impl<T> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").finish_non_exhaustive()
    }
}

/// Shared ownership inside the runtime; invisible to `*_INFO_REFERENCE_COUNT`.
#[repr(transparent)]
pub struct Owned<T: Body>(&'static Object<T>);

impl<T: Body> Owned<T> {
    /// Puts `body` into a slot; C knows nothing of it until `publish`.
    pub fn new(body: T) -> Self {
        let slot = T::slab().take();
        // SAFETY: a slot just taken is ours alone, and its body is vacant.
        unsafe { slot.body.get().cast::<T>().write(body) };
        slot.header.owners.store(1, Release); // pairs with `raise`, for `find`
        slot.header.tag.store(T::TAG.0, Release); // pairs with `Borrowed::new`
        Self(slot)
    }
    /// The object that C knows by the handle with this number. For numbers that may be anything:
    /// what is no live object of this kind is found out without looking at what lies there.
    ///
    /// # Errors
    /// The kind's own code if there is none, or C holds no reference to it.
    pub fn find(address: usize) -> Result<Self> {
        let slot = T::slab().slot_at(address).filter(|slot| raise(&slot.header.owners));
        let found = slot.map(Self).filter(|found| found.header.api_refs.load(Acquire) != 0);
        found.ok_or(T::INVALID.into())
    }
    /// Gives C one reference. However many C holds, they share one owner.
    pub fn publish(self) -> *mut Object<T> {
        let slot = self.0;
        if !slot.is_counted() {
            if slot.header.api_refs.swap(UNCOUNTED, AcqRel) == 0 {
                std::mem::forget(self); // C's owner for good
            }
            return ptr::from_ref(slot).cast_mut();
        }
        // One that nobody else has: there is nothing to count against.
        let is_fresh =
            slot.header.api_refs.load(Relaxed) == 0 && slot.header.owners.load(Acquire) == 1;
        if is_fresh {
            slot.header.api_refs.store(1, Release);
        }
        if is_fresh || slot.header.api_refs.fetch_add(1, AcqRel) == 0 {
            std::mem::forget(self); // C's owner from here on
        }
        ptr::from_ref(slot).cast_mut()
    }
    /// Lends this object as an entry's argument would.
    pub fn borrow(&self) -> Borrowed<'_, T> {
        Borrowed { object: self.0, _call: PhantomData }
    }
}
impl<T: Body> Clone for Owned<T> {
    fn clone(&self) -> Self {
        assert!(raise(&self.0.header.owners), "2^32 owners of one object");
        Self(self.0)
    }
}
impl<T: Body> PartialEq for Owned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}
impl<T: Body> Deref for Owned<T> {
    type Target = Object<T>;
    fn deref(&self) -> &Object<T> {
        self.0
    }
}
impl<T: Body> Drop for Owned<T> {
    fn drop(&mut self) {
        if lower(&self.0.header.owners) == Some(0) {
            self.0.header.tag.store(Tag::FREE.0, Relaxed);
            // SAFETY: the last owner just went, so nobody reaches this live body any more.
            unsafe { self.0.body.get().cast::<T>().drop_in_place() };
            T::slab().slots().free.push_back(self.0);
        }
    }
}
impl<T: Body> fmt::Debug for Owned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({:p})", self.0)
    }
}

/// A handle lent by C for the length of one call. To `Owned` what `BorrowedFd` is to `OwnedFd`:
/// it holds no count, so entries that block, or can run a callback, take `Owned` or `Held` first.
#[repr(transparent)]
pub struct Borrowed<'call, T: 'static> {
    object: &'static Object<T>,
    _call: PhantomData<&'call T>,
}
impl<T> Clone for Borrowed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Borrowed<'_, T> {}
impl<T> Deref for Borrowed<'_, T> {
    type Target = Object<T>;
    fn deref(&self) -> &Object<T> {
        self.object
    }
}
impl<T> fmt::Debug for Borrowed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Borrowed({:p})", self.object)
    }
}
impl<'call, T> Borrowed<'call, T> {
    /// The object, for as long as it is lent.
    pub fn get(self) -> &'call Object<T> {
        self.object
    }
}
impl<T: Body> Borrowed<'_, T> {
    /// # Safety
    /// `handle` is null or came from some `publish`, and while this is used for more than
    /// `own`, nobody takes the last reference back.
    ///
    /// # Errors
    /// `INVALID_NULL_HANDLE` for null; the kind's own code for another kind, another
    /// adapter's object, or a released handle whose slot was not reused yet.
    pub unsafe fn new(handle: *mut Object<T>) -> Result<Self> {
        let handle = NonNull::new(handle).ok_or(ErrorCode::InvalidNullHandle)?;
        if !handle.is_aligned() {
            return Err(T::INVALID.into());
        }
        // SAFETY: slots are never freed and all start with a header; its tag, not `T`, says what follows.
        let header = unsafe { handle.cast::<Header>().as_ref() };
        if header.tag.load(Acquire) != T::TAG.0 || header.api_refs.load(Acquire) == 0 {
            return Err(T::INVALID.into());
        }
        // SAFETY: the tag says so.
        Ok(Self { object: unsafe { handle.as_ref() }, _call: PhantomData })
    }
    /// A reference for the runtime's own use (a queue keeping its events alive, say).
    ///
    /// # Errors
    /// The kind's own code if another thread took the last one back since the handle was checked.
    pub fn own(self) -> Result<Owned<T>> {
        raise(&self.object.header.owners).then(|| Owned(self.object)).ok_or(T::INVALID.into())
    }
    /// One more reference for C.
    ///
    /// # Errors
    /// The kind's own code if C holds none any more.
    pub fn retain(self) -> Result<()> {
        if self.is_uncounted() {
            return Ok(());
        }
        raise(&self.object.header.api_refs).then_some(()).ok_or(T::INVALID.into())
    }
    /// Takes one reference back from C; the last one gives up the owner that C's shared.
    /// Of two threads that race for the last, one gets an error.
    ///
    /// # Safety
    /// If it is the last, nobody still uses a `Borrowed` of this object.
    ///
    /// # Errors
    /// The kind's own code if C holds none any more.
    pub unsafe fn release(self) -> Result<()> {
        if self.is_uncounted() {
            return Ok(());
        }
        if lower(&self.object.header.api_refs).ok_or(T::INVALID)? == 0 {
            drop(Owned(self.object));
        }
        Ok(())
    }
}

/// A list of handles made `Owned` in place, for as long as this lives. Allocates nothing.
pub struct Held<'call, T: Body> {
    list: &'call [Borrowed<'call, T>],
    is_held: bool,
}
impl<'call, T: Body> Held<'call, T> {
    /// Takes one owner of each.
    ///
    /// # Errors
    /// The kind's own code if one was released meanwhile; then none is held.
    #[inline]
    pub fn new(list: &'call [Borrowed<'call, T>]) -> Result<Self> {
        match list {
            [one] if one.is_settled() => Ok(Self { list, is_held: false }),
            _ => Self::hold(list),
        }
    }
    fn hold(list: &'call [Borrowed<'call, T>]) -> Result<Self> {
        let mut held = Self { list: &[], is_held: true };
        for (i, one) in list.iter().enumerate() {
            std::mem::forget(one.own()?);
            held.list = &list[..=i]; // what an error on the next one gives up again
        }
        Ok(held)
    }
}
impl<T: Body> Deref for Held<'_, T> {
    type Target = [Owned<T>];
    fn deref(&self) -> &[Owned<T>] {
        // SAFETY: both are transparent over `&'static Object<T>`, and `new` made each an owner, or what
        // is lent here is used in a call that does not block.
        unsafe { std::slice::from_raw_parts(self.list.as_ptr().cast(), self.list.len()) }
    }
}
impl<T: Body> Drop for Held<'_, T> {
    fn drop(&mut self) {
        if self.is_held {
            self.list.iter().for_each(|one| drop(Owned(one.object)));
        }
    }
}
impl<T: Body> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list).finish()
    }
}

/// The body of objects that an adapter never makes. Every handle said to be one is refused.
pub enum Never<const KIND: u16> {}
impl<const KIND: u16> Body for Never<KIND> {
    const TAG: Tag = Tag(u64::MAX - KIND as u64);
    const INVALID: ErrorCode = invalid_of(KIND);
    fn slab() -> &'static Slab<Self> {
        unreachable!("a body that cannot be made is never put into a slab")
    }
}
impl<const KIND: u16> fmt::Debug for Never<KIND> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
/// What C hears of a handle that is not of this kind.
const fn invalid_of(kind: u16) -> ErrorCode {
    const PROGRAM: u16 = Kind::Program as u16;
    const KERNEL: u16 = Kind::Kernel as u16;
    const SAMPLER: u16 = Kind::Sampler as u16;
    const MEM: u16 = Kind::Mem as u16;
    const PHYSICAL_MEM: u16 = Kind::PhysicalMem as u16;
    const COMMAND_BUFFER: u16 = Kind::CommandBuffer as u16;
    const COMMAND: u16 = Kind::CommandBufferCommand as u16;
    match kind {
        PROGRAM => ErrorCode::InvalidProgram,
        KERNEL => ErrorCode::InvalidKernel,
        SAMPLER => ErrorCode::InvalidSampler,
        MEM | PHYSICAL_MEM => ErrorCode::InvalidMemObject,
        COMMAND_BUFFER => ErrorCode::InvalidCommandBufferExp,
        COMMAND => ErrorCode::InvalidCommandBufferCommandHandleExp,
        _ => ErrorCode::InvalidValue,
    }
}
