//! C handles. This is the only module that converts handles to references and back.
//!
//! A handle points at a slot of a per-kind slab whose memory is never freed. The header of a slot can therefore always
//! be read, and a released handle yields an error code until its slot is reused.
#![expect(unsafe_code, reason = "handles are pointers given to C")]
use crate::error::{ErrorCode, Result};
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
use ur_mapping::PerProcess;
use ur_sys::ur_dditable_t;

/// The backend to which an object belongs; the numbers are those of `ur_backend_t`.
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
    /// The adapter without devices.
    Null = 0x7ffe,
    /// The adapter whose entries tests replace.
    Mock = 0x7fff,
}

impl Backend {
    /// All backends, each at its `index`.
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
    /// Its position in `ALL`, for arrays with one element per adapter.
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
    /// The backend with this number.
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

/// The kind of object that a handle refers to.
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

/// The backend and kind of an object. Every entry checks it, so that a wrong or released handle yields an error code
/// and not an invalid memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(u64);
impl Tag {
    const FREE: Self = Self(0);
    /// The tag of `kind` objects of `backend`'s adapter.
    pub const fn new(backend: Backend, kind: Kind) -> Self {
        Self((0x5552_4f42 << 32) | ((backend as u64) << 16) | kind as u64)
    }
    /// The backend of objects with this tag; `None` for the tags of kinds that are never made.
    pub const fn backend(self) -> Option<Backend> {
        Backend::of_number((self.0 >> 16) as u16)
    }
    /// The number of its kind.
    pub(crate) const fn kind(self) -> u16 {
        self.0 as u16
    }
}

/// The Rust state of one kind of object.
pub trait Body: Send + Sync + Sized + 'static {
    /// The tag in the header of every such object.
    const TAG: Tag;
    /// The error code for a handle that does not refer to such an object.
    const INVALID: ErrorCode;
    /// The slab of such objects.
    fn slab() -> &'static Slab<Self>;
    /// Whether the caller's references are counted. If not, retaining and releasing do nothing, and once published the
    /// object exists for ever: root devices, whose release has no effect.
    fn is_counted(&self) -> bool {
        true
    }
    /// Whether an entry that waits only for this object returns at once, in which case it need not hold a reference.
    /// May poll, but does not block.
    fn is_settled(&self) -> bool {
        false
    }
    /// Called when the caller has released its last reference. Objects of the runtime may still own this one.
    fn released(&self) {}
}

/// The value of `api_refs` for an object whose references are not counted. It is in the header because a handle that
/// another thread is just releasing has no body that could be asked.
const UNCOUNTED: u32 = u32::MAX;

/// The start of every object. Its layout is ABI: the loader dispatches through the first word.
#[repr(C)]
struct Header {
    table: &'static ur_dditable_t,
    tag: AtomicU64,
    /// The caller's references, which `*_INFO_REFERENCE_COUNT` reports.
    api_refs: AtomicU32,
    /// The runtime's references, plus one for the caller while `api_refs` is not 0.
    owners: AtomicU32,
}

/// One slot, at which a handle points. Outside this module it is reached only while it has an owner.
#[repr(C)]
pub struct Object<T> {
    header: Header,
    body: UnsafeCell<MaybeUninit<T>>,
}
// SAFETY: the body is written before the tag is set, and dropped after its last owner; in between it is only read.
unsafe impl<T: Send + Sync> Sync for Object<T> {}
impl<T> Object<T> {
    /// The value that `*_INFO_REFERENCE_COUNT` reports.
    pub fn api_refs(&self) -> u32 {
        match self.header.api_refs.load(Relaxed) {
            UNCOUNTED => 1,
            count => count,
        }
    }
    /// Whether retaining and releasing it have no effect.
    fn is_uncounted(&self) -> bool {
        self.header.api_refs.load(Relaxed) == UNCOUNTED
    }
    /// The handle of this object, without a reference.
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
        // SAFETY: only `Owned` and `Borrowed` give out an `Object`, and both guarantee a live body.
        unsafe { &*self.body.get().cast() }
    }
}

/// Adds a reference unless the count is 0: a count that has reached 0 stays there.
fn raise(count: &AtomicU32) -> bool {
    count.fetch_update(Acquire, Relaxed, |n| n.checked_add(1).filter(|_| n != 0)).is_ok()
}
/// Removes a reference, if there is one; returns how many are left. The last one sees what all others did.
fn lower(count: &AtomicU32) -> Option<u32> {
    count.fetch_update(AcqRel, Relaxed, |n| n.checked_sub(1)).ok().map(|n| n - 1)
}

/// The slots for objects of one kind. They are reused oldest first, and `LATE` of them always stay free: a released
/// handle yields an error for at least that many creations.
///
/// A forked child starts with slots of its own, because a thread that does not exist in the child may hold the parent's
/// lock. When the child releases the parent's objects, their slots join its own.
pub struct Slab<T: 'static> {
    table: &'static ur_dditable_t,
    /// Held for a few instructions at each creation and release. It is a spin lock so that unlocking is a single store.
    slots: PerProcess<SpinMutex<Slots<T>, Yield>>,
}
struct Slots<T: 'static> {
    free: VecDeque<&'static Object<T>>,
    /// All slots.
    blocks: Vec<&'static [Object<T>]>,
}
impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { free: VecDeque::new(), blocks: Vec::new() }
    }
}
impl<T> Slab<T> {
    /// For at least how many creations a released handle yields an error.
    pub const LATE: usize = 64;
    /// An empty slab whose objects dispatch through `table`.
    pub const fn new(table: &'static ur_dditable_t) -> Self {
        Self { table, slots: PerProcess::new() }
    }
    fn slots(&self) -> SpinMutexGuard<'_, Slots<T>> {
        self.slots.get().lock()
    }
    #[inline(never)]
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
    /// The slot that starts at `address`, if there is one. Does not read memory at `address`.
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

/// Shared ownership within the runtime, which `*_INFO_REFERENCE_COUNT` does not show.
#[repr(transparent)]
pub struct Owned<T: Body>(&'static Object<T>);

impl<T: Body> Owned<T> {
    /// Puts `body` into a slot. The caller does not know the object until `publish`.
    #[inline]
    pub fn new(body: T) -> Self {
        Self::made(|| body)
    }
    /// The same with a body that is made in the slot instead of moved there. A panic of `body` loses the slot.
    #[inline(always)]
    pub fn made(body: impl FnOnce() -> T) -> Self {
        let slot = T::slab().take();
        // SAFETY: the slot was just taken, so nothing else uses it, and it has no body.
        unsafe { slot.body.get().cast::<T>().write(body()) };
        slot.header.owners.store(1, Release); // pairs with `raise`, for `find`
        slot.header.tag.store(T::TAG.0, Release); // pairs with `Borrowed::new`
        Self(slot)
    }
    /// The object whose handle has this number. The number may be anything: whether it is a live object of this kind is
    /// determined without reading memory at that address.
    ///
    /// # Errors
    /// The error code of the kind if there is no such object, or the caller holds no reference to it.
    pub fn find(address: usize) -> Result<Self> {
        let slot = T::slab().slot_at(address).filter(|slot| raise(&slot.header.owners));
        let found = slot.map(Self).filter(|found| found.header.api_refs.load(Acquire) != 0);
        found.ok_or(T::INVALID.into())
    }
    /// Gives the caller one reference. All of the caller's references together count as one owner.
    pub fn publish(self) -> *mut Object<T> {
        let slot = self.0;
        if !slot.is_counted() {
            if slot.header.api_refs.swap(UNCOUNTED, AcqRel) == 0 {
                std::mem::forget(self); // the caller's owner, which is kept for ever
            }
            return ptr::from_ref(slot).cast_mut();
        }
        // No other reference exists, so a plain store suffices.
        let is_fresh =
            slot.header.api_refs.load(Relaxed) == 0 && slot.header.owners.load(Acquire) == 1;
        if is_fresh {
            slot.header.api_refs.store(1, Release);
        }
        if is_fresh || slot.header.api_refs.fetch_add(1, AcqRel) == 0 {
            std::mem::forget(self); // now the caller's owner
        }
        ptr::from_ref(slot).cast_mut()
    }
    /// Lends this object as if it were an argument of an entry.
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
            // SAFETY: the last owner is gone, so nothing else reaches this live body.
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

/// A handle that the caller lends for the length of one call. It relates to `Owned` like `BorrowedFd` to `OwnedFd`: it
/// holds no reference, so entries that block or may run a callback take `Owned` or `Held` first.
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
    /// The object of a handle that the caller passed, checked.
    ///
    /// # Safety
    /// `handle` is null or was returned by `publish`, and no thread releases the last reference while the result is
    /// used for more than `own`.
    ///
    /// # Errors
    /// `INVALID_NULL_HANDLE` for null; the error code of the kind for an object of another kind or adapter, or for a
    /// released handle whose slot was not reused yet.
    pub unsafe fn new(handle: *mut Object<T>) -> Result<Self> {
        let handle = NonNull::new(handle).ok_or(ErrorCode::InvalidNullHandle)?;
        if !handle.is_aligned() {
            return Err(T::INVALID.into());
        }
        // SAFETY: slots are never freed and all start with a header; its tag, not `T`, tells what follows.
        let header = unsafe { handle.cast::<Header>().as_ref() };
        if header.tag.load(Acquire) != T::TAG.0 || header.api_refs.load(Acquire) == 0 {
            return Err(T::INVALID.into());
        }
        // SAFETY: the tag states that it is an object with a `T`.
        Ok(Self { object: unsafe { handle.as_ref() }, _call: PhantomData })
    }
    /// Takes a reference for the runtime's own use; for example, a queue keeps its events alive.
    ///
    /// # Errors
    /// The error code of the kind if another thread released the last reference since the handle was checked.
    pub fn own(self) -> Result<Owned<T>> {
        raise(&self.object.header.owners).then(|| Owned(self.object)).ok_or(T::INVALID.into())
    }
    /// The same for each of a list.
    ///
    /// # Errors
    /// As for [`own`](Self::own).
    pub fn own_all(all: &[Self]) -> Result<Vec<Owned<T>>> {
        all.iter().map(|one| one.own()).collect()
    }
    /// Gives the caller one more reference.
    ///
    /// # Errors
    /// The error code of the kind if the caller holds none any more.
    pub fn retain(self) -> Result<()> {
        if self.is_uncounted() {
            return Ok(());
        }
        raise(&self.object.header.api_refs).then_some(()).ok_or(T::INVALID.into())
    }
    /// Takes one reference back from the caller; with the last one, the caller's share of ownership ends. If two
    /// threads race for the last, one gets an error.
    ///
    /// # Safety
    /// If it is the last reference, no thread still uses a `Borrowed` of this object.
    ///
    /// # Errors
    /// The error code of the kind if the caller holds none any more.
    pub unsafe fn release(self) -> Result<()> {
        if self.is_uncounted() {
            return Ok(());
        }
        if lower(&self.object.header.api_refs).ok_or(T::INVALID)? == 0 {
            let last = Owned(self.object);
            last.released();
            drop(last);
        }
        Ok(())
    }
}

/// A list of handles with one owner each, converted in place for as long as this exists. Allocates nothing.
pub struct Held<'call, T: Body> {
    list: &'call [Borrowed<'call, T>],
    is_held: bool,
}
impl<'call, T: Body> Held<'call, T> {
    /// Takes one owner of each object.
    ///
    /// # Errors
    /// The error code of the kind if one was released meanwhile; then none is held.
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
            held.list = &list[..=i]; // released again if the next one fails
        }
        Ok(held)
    }
}
impl<T: Body> Deref for Held<'_, T> {
    type Target = [Owned<T>];
    fn deref(&self) -> &[Owned<T>] {
        // SAFETY: both are transparent over `&'static Object<T>`. Either `new` took an owner of each, or the list is
        // used in a call that does not block.
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

/// The body of objects that an adapter never makes. Every handle of that kind is refused.
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
/// The error code for a handle that is not of this kind.
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
