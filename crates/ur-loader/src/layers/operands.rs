//! The arguments of a call, read by what the rows say of them. The only place in the layers that
//! reads a program's memory, besides the checks of parameters.
#![expect(unsafe_code, reason = "reads arguments that a C caller vouches for")]
use super::effect::Size;
use std::marker::PhantomData;

/// The arguments of a call: a pointer to each.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    params: *const *const u8,
    count: usize,
    call: PhantomData<&'a [*const u8]>,
}
impl<'a> Operands<'a> {
    /// # Safety
    /// These are pointers to the arguments of the call whose row is used with them, and what they
    /// point at is as the entry says.
    pub unsafe fn new(params: &'a [*const u8]) -> Self {
        Self { params: params.as_ptr(), count: params.len(), call: PhantomData }
    }
    /// The pointers, for the printer.
    pub fn as_ptr(self) -> *const *const u8 {
        self.params
    }
    fn read<T: Copy>(self, param: usize) -> T {
        assert!(param < self.count, "the row is another entry's");
        // SAFETY: there is a pointer for each parameter, as just seen.
        let at = unsafe { self.params.wrapping_add(param).read() };
        // SAFETY: it points at the argument.
        unsafe { at.cast::<T>().read_unaligned() }
    }
    /// A handle or an address.
    pub fn word(self, param: usize) -> usize {
        self.read(param)
    }
    /// Where a block begins, or how much of it there is: in each of three directions.
    pub fn block(self, param: usize) -> [u64; 3] {
        self.read(param)
    }
    /// A number of 32 bits: counts of objects, and names of properties, are such.
    pub fn number(self, param: usize) -> u32 {
        self.read(param)
    }
    /// The handle, address or size that a parameter points at; 0 where it points at nothing.
    pub fn pointed(self, param: usize) -> usize {
        self.listed(param, 1).first().copied().unwrap_or(0)
    }
    /// The number of 32 bits that a parameter points at, if it points at one.
    pub fn pointed_number(self, param: usize) -> Option<u32> {
        let at: *const u32 = self.read(param);
        // SAFETY: not null, hence a number, says the caller.
        (!at.is_null()).then(|| unsafe { at.read() })
    }
    /// The handles that a parameter points at.
    pub fn listed(self, param: usize, count: usize) -> Vec<usize> {
        let at: *const usize = self.read(param);
        if at.is_null() {
            return Vec::new();
        }
        // SAFETY: there are so many there, says the caller.
        (0..count).map(|i| unsafe { at.wrapping_add(i).read_unaligned() }).collect()
    }
    /// The handles that the answer to a query holds.
    pub fn answered(self, param: usize, bytes: usize) -> Vec<usize> {
        self.listed(param, bytes / size_of::<usize>())
    }
    /// How many bytes a call touches or gives.
    pub fn size(self, size: &Size) -> usize {
        match *size {
            Size::Bytes(param) => self.word(param),
            Size::Product(one, other) => self.word(one).saturating_mul(self.word(other)),
            Size::At(param) => self.pointed(param),
            Size::Pitched(pitch, rows) => self.pointed(pitch).saturating_mul(self.word(rows)),
        }
    }
}
