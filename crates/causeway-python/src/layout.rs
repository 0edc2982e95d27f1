//! How an array lies in a piece of memory: arithmetic that neither overflows nor leaves the memory.
use crate::dtype::DType;
use smallvec::SmallVec;

/// The most dimensions, as in NumPy 2.
pub const MOST_DIMENSIONS: usize = 64;

/// Lengths or strides, one for each dimension. Those of few dimensions lie in the layout itself.
pub type Lengths = SmallVec<[i64; 4]>;

/// Where the elements of an array are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    pub dtype: DType,
    /// Bytes from the beginning of the memory to the first element.
    pub offset: usize,
    pub shape: Lengths,
    /// In elements, as in DLPack.
    pub strides: Lengths,
}

impl Layout {
    /// Row after row from the beginning of the memory; `None` if a length is negative, the bytes cannot be counted, or
    /// the dimensions are too many.
    pub fn contiguous(dtype: DType, shape: &[i64]) -> Option<Self> {
        let mut strides = Lengths::from_elem(1, shape.len());
        let mut next = 1_i64;
        for (stride, &length) in strides.iter_mut().zip(shape).rev() {
            *stride = next;
            next = next.checked_mul(length.max(1))?;
        }
        next.checked_mul(i64::try_from(dtype.size()).ok()?)?;
        let few = shape.len() <= MOST_DIMENSIONS && shape.iter().all(|&length| length >= 0);
        few.then(|| Self { dtype, offset: 0, shape: shape.into(), strides })
    }
    /// Elements; the product fits, since the bytes could be counted or lie in memory.
    pub fn count(&self) -> usize {
        self.shape.iter().map(|&length| usize::try_from(length).unwrap_or(0)).product()
    }
    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.count() * self.dtype.size()
    }
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
    /// Whether the elements follow each other, the last index fastest.
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        self.is_empty()
            || self.shape.iter().zip(&self.strides).rev().all(|(&length, &stride)| {
                let fits = length == 1 || stride == next;
                next *= length;
                fits
            })
    }
    /// The bytes, relative to the first element, from the lowest to the end of the highest; `None` if they cannot be
    /// counted. Arrays without elements have none.
    pub fn reach(&self) -> Option<(i64, i64)> {
        if self.is_empty() {
            return Some((0, 0));
        }
        let size = i64::try_from(self.dtype.size()).ok()?;
        let (mut low, mut high) = (0_i64, 0_i64);
        for (&length, &stride) in self.shape.iter().zip(&self.strides) {
            let far = stride.checked_mul(length.checked_sub(1)?)?;
            let end = if far < 0 { &mut low } else { &mut high };
            *end = end.checked_add(far)?;
        }
        Some((low.checked_mul(size)?, high.checked_add(1)?.checked_mul(size)?))
    }
    /// The bytes of the memory that the array touches; `None` unless they are all within its `bytes`, each element
    /// where such an element may be. An array without elements touches none, wherever it begins.
    pub fn within(&self, bytes: usize) -> Option<std::ops::Range<usize>> {
        let consistent = self.shape.len() == self.strides.len()
            && self.shape.len() <= MOST_DIMENSIONS
            && self.shape.iter().all(|&length| length >= 0)
            && (self.is_empty() || self.offset.is_multiple_of(self.dtype.size().min(8)));
        let whole =
            self.shape.iter().try_fold(1_i64, |all, &length| all.checked_mul(length.max(1)));
        whole?.checked_mul(i64::try_from(self.dtype.size()).ok()?)?;
        if self.is_empty() {
            return consistent.then_some(0..0);
        }
        let (low, high) = self.reach()?;
        let offset = i64::try_from(self.offset).ok()?;
        let start = usize::try_from(offset.checked_add(low)?).ok()?;
        let end = usize::try_from(offset.checked_add(high)?).ok()?;
        (consistent && end <= bytes).then_some(start..end)
    }
    /// The same elements in memory that begins `by` bytes later, or earlier; it begins with the first of them at the latest.
    pub fn moved(mut self, by: isize) -> Self {
        self.offset = self.offset.saturating_add_signed(by.saturating_neg());
        self
    }
    /// One index of a dimension, which goes; negative ones count from the end. `None` if there is none such.
    pub fn at(&self, axis: usize, index: i64) -> Option<Self> {
        let length = *self.shape.get(axis)?;
        let index = if index < 0 { index + length } else { index };
        if !(0..length).contains(&index) {
            return None;
        }
        let mut one = self.part(axis, index, 1, 1);
        one.shape.remove(axis);
        one.strides.remove(axis);
        Some(one)
    }
    /// `length` indices of a dimension from `start` on, in steps of `step`; all of them are in it.
    pub fn part(&self, axis: usize, start: i64, step: i64, length: i64) -> Self {
        let mut part = self.clone();
        if length > 0 {
            let elements = self.strides[axis] * start;
            let bytes = elements * self.dtype.size() as i64; // in the memory, so it fits
            part.offset = part.offset.wrapping_add_signed(bytes as isize);
        }
        part.shape[axis] = length;
        part.strides[axis] = self.strides[axis].saturating_mul(step);
        part
    }
    /// A dimension of length 1 before `axis`.
    pub fn with_axis(&self, axis: usize) -> Self {
        let mut more = self.clone();
        more.shape.insert(axis, 1);
        more.strides.insert(axis, 0);
        more
    }
    /// Strides in bytes, as NumPy has them.
    pub fn byte_strides(&self) -> Vec<i64> {
        let size = self.dtype.size() as i64;
        self.strides.iter().map(|stride| stride.saturating_mul(size)).collect()
    }
    /// The dimensions from the slowest to the fastest, as the elements lie in memory; as they are numbered where some
    /// elements lie at one place. Dimensions of length 1 stay where they are.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        let long: Vec<usize> =
            order.iter().copied().filter(|&axis| self.shape[axis] != 1).collect();
        if long.iter().all(|&axis| self.strides[axis] != 0) {
            let mut sorted = long.clone();
            sorted.sort_by_key(|&axis| std::cmp::Reverse(self.strides[axis].unsigned_abs()));
            for (place, axis) in long.into_iter().zip(sorted) {
                order[place] = axis;
            }
        }
        order
    }
    /// The same elements with the dimensions from the slowest to the fastest, as they lie in memory.
    pub fn in_order(&self) -> Self {
        let of = |list: &[i64]| self.order().into_iter().map(|axis| list[axis]).collect();
        Self { shape: of(&self.shape), strides: of(&self.strides), ..self.clone() }
    }
    /// An array of this shape without gaps from the beginning of its memory on, its dimensions in the order of this one's.
    pub fn dense(&self) -> Self {
        let mut dense = Self { offset: 0, ..self.clone() };
        let mut next = 1_i64;
        for axis in self.order().into_iter().rev() {
            dense.strides[axis] = next;
            next = next.saturating_mul(self.shape[axis].max(1)); // counted when the shape was seen
        }
        dense
    }
    /// Where runs of elements that follow each other begin, in bytes from the first element, and the length of each.
    pub fn runs(&self) -> (Runs<'_>, usize) {
        let size = self.dtype.size() as i64;
        let mut inner = self.shape.len();
        let mut run = 1_i64;
        while inner > 0 && (self.shape[inner - 1] == 1 || self.strides[inner - 1] == run) {
            run *= self.shape[inner - 1];
            inner -= 1;
        }
        let (layout, index) = (self, vec![0; inner]);
        match self.is_empty() {
            true => (Runs { layout, index, next: None }, 0),
            false => (Runs { layout, index, next: Some(0) }, (run * size) as usize),
        }
    }
}

/// The beginnings of runs, one after the other: an array that is repeated without end has more of them than there is memory.
pub struct Runs<'a> {
    layout: &'a Layout,
    /// Of the dimensions outside a run.
    index: Vec<i64>,
    next: Option<i64>,
}
impl Iterator for Runs<'_> {
    type Item = i64;
    fn next(&mut self) -> Option<i64> {
        let start = self.next.take()?;
        let mut next = start;
        let size = self.layout.dtype.size() as i64;
        for (axis, index) in self.index.iter_mut().enumerate().rev() {
            let step = self.layout.strides[axis] * size;
            *index += 1;
            if *index < self.layout.shape[axis] {
                self.next = Some(next + step);
                break;
            }
            next -= step * (*index - 1);
            *index = 0;
        }
        Some(start)
    }
}
