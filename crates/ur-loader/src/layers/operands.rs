//! Reads the arguments of a call as its row describes them. Besides the parameter checks, this is the only
//! place in the layers that reads the program's memory.
#![expect(unsafe_code, reason = "reads arguments that a C caller vouches for")]
use super::effect::Size;
use std::marker::PhantomData;

/// A pointer to each argument of a call.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    params: *const *const u8,
    count: usize,
    call: PhantomData<&'a [*const u8]>,
}
impl<'a> Operands<'a> {
    /// # Safety
    /// The pointers are to the arguments of the call whose row is used with them, and the memory that these
    /// arguments point at is valid as the entry's specification says.
    pub unsafe fn new(params: &'a [*const u8]) -> Self {
        Self { params: params.as_ptr(), count: params.len(), call: PhantomData }
    }
    /// The pointers, for the printer.
    pub fn as_ptr(self) -> *const *const u8 {
        self.params
    }
    fn read<T: Copy>(self, param: usize) -> T {
        assert!(param < self.count, "the row is another entry's");
        // SAFETY: `new` got a pointer for each parameter, and the index was just checked.
        let at = unsafe { self.params.wrapping_add(param).read() };
        // SAFETY: the caller of `new` promised that it points at the argument, and the row states the
        // argument's type.
        unsafe { at.cast::<T>().read_unaligned() }
    }
    /// A handle or an address.
    pub fn word(self, param: usize) -> usize {
        self.read(param)
    }
    /// The origin or the extent of a block, in three dimensions.
    pub fn block(self, param: usize) -> [u64; 3] {
        self.read(param)
    }
    /// A 32-bit number, such as a count of objects or the name of a property.
    pub fn number(self, param: usize) -> u32 {
        self.read(param)
    }
    /// The handle, address or size that a parameter points at; 0 if the pointer is null.
    pub fn pointed(self, param: usize) -> usize {
        self.listed(param, 1).first().copied().unwrap_or(0)
    }
    /// The 32-bit number that a parameter points at; `None` if the pointer is null.
    pub fn pointed_number(self, param: usize) -> Option<u32> {
        let at: *const u32 = self.read(param);
        // SAFETY: not null, hence readable, as the caller of the entry promises.
        (!at.is_null()).then(|| unsafe { at.read() })
    }
    /// The `count` handles that a parameter points at; none if the pointer is null.
    pub fn listed(self, param: usize, count: usize) -> Vec<usize> {
        let at: *const usize = self.read(param);
        if at.is_null() {
            return Vec::new();
        }
        // SAFETY: the caller of the entry promises `count` elements there.
        (0..count).map(|i| unsafe { at.wrapping_add(i).read_unaligned() }).collect()
    }
    /// The handles that the answer to a query holds.
    pub fn answered(self, param: usize, bytes: usize) -> Vec<usize> {
        self.listed(param, bytes / size_of::<usize>())
    }
    /// The number of bytes that `size` describes for this call.
    pub fn size(self, size: &Size) -> usize {
        match *size {
            Size::Bytes(param) => self.word(param),
            Size::Product(one, other) => self.word(one).saturating_mul(self.word(other)),
            Size::At(param) => self.pointed(param),
            Size::Pitched(pitch, rows) => self.pointed(pitch).saturating_mul(self.word(rows)),
        }
    }
}
