//! Memory objects, as far as commands have to know them.
use crate::{
    memory::pictures::{Image, OnHost, Part},
    over_driver::mem::{KeepsBytes, Mapping, Mem, Storage as _},
};
use std::sync::Arc;
use ur_adapter::{error::Result, memory::UsmPtr, object::Borrowed};
use ur_sys::ur_map_flags_t;

/// A memory object, as far as commands have to know it.
pub trait Buffer {
    /// A range that the caller has where the host can reach it.
    type Mapping;
    /// # Errors
    /// `INVALID_SIZE` for 0 bytes and for such as are not all in the buffer; `INVALID_MEM_OBJECT` for an image.
    fn check_range(&self, offset: usize, size: usize) -> Result<()>;
    /// # Errors
    /// `INVALID_MEM_OBJECT` for a buffer.
    fn image(&self) -> Result<&Image>;
    /// Which bytes it has: of what, and from where in it on. Buffers of which the first is the same may share bytes.
    fn origin(&self) -> (usize, usize);
    /// Where the caller is going to have a range.
    ///
    /// # Errors
    /// As for [`check_range`](Self::check_range); `OUT_OF_HOST_MEMORY`; the driver's own.
    fn mapping(&self, flags: ur_map_flags_t, offset: usize, size: usize) -> Result<Self::Mapping>;
    /// What there is to know of a mapping.
    fn mapped(mapping: &Self::Mapping) -> Mapped;
    /// The caller has it.
    fn map(&self, mapping: Self::Mapping);
    /// The caller gives it back.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not mapped.
    fn unmap(&self, at: UsmPtr) -> Result<Self::Mapping>;
}
/// A range of a buffer that the caller has.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Where the caller has it.
    pub at: UsmPtr,
    /// Where in the buffer it begins, and how many bytes it has; `None` where it is the buffer's own memory, so that
    /// nothing need be copied.
    pub copied: Option<(usize, usize)>,
    /// What the caller does with it.
    pub flags: ur_map_flags_t,
}
impl<D: KeepsBytes> Buffer for Mem<D> {
    type Mapping = Mapping<D>;
    fn check_range(&self, offset: usize, size: usize) -> Result<()> {
        self.check_range(offset, size)
    }
    fn image(&self) -> Result<&Image> {
        self.image()
    }
    fn origin(&self) -> (usize, usize) {
        match self.storage().host() {
            Some(base) => (0, base.addr() + self.origin()),
            None => (Arc::as_ptr(self.storage()).addr(), self.origin()),
        }
    }
    fn mapping(&self, flags: ur_map_flags_t, offset: usize, size: usize) -> Result<Mapping<D>> {
        self.mapping(flags, offset, size)
    }
    fn mapped(mapping: &Mapping<D>) -> Mapped {
        let Mapping { at, offset, size, flags, is_own, .. } = *mapping;
        Mapped { at, copied: (!is_own).then_some((offset, size)), flags }
    }
    fn map(&self, mapping: Mapping<D>) {
        self.map(mapping);
    }
    fn unmap(&self, at: UsmPtr) -> Result<Mapping<D>> {
        self.unmap(at)
    }
}

/// Pixels to copy.
#[derive(Debug)]
pub enum Pixels<'a, M: 'static> {
    /// Between an image and host memory.
    Host {
        /// The image.
        image: Borrowed<'a, M>,
        /// Which of its pixels.
        part: Part,
        /// Where they are in memory.
        host: OnHost,
        /// Whether they are written into the image.
        writes: bool,
    },
    /// From an image to one of the same format.
    Copy {
        /// What is read.
        from: (Borrowed<'a, M>, Part),
        /// What is written.
        to: (Borrowed<'a, M>, Part),
    },
}
