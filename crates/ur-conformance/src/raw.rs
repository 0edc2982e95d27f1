//! Calls entries without their types: arguments are words, passed as the C calling convention requires. It is
//! for rules that apply to all entries; `call.rs` makes typed calls.
#![expect(unsafe_code, reason = "calls functions by the calling convention")]

/// An entry of unknown type.
pub type Entry = unsafe extern "C" fn();

/// One argument.
#[derive(Clone, Debug)]
pub enum Word {
    /// A number, a flag, a pointer or a handle.
    One(u64),
    /// A struct of three 64-bit members, by value.
    Three([u64; 3]),
}

/// The number of arguments in registers, and the maximal number on the stack.
const REGISTERS: usize = if cfg!(target_arch = "x86_64") { 6 } else { 8 };
const STACK: usize = 24;

/// Calls `entry`. Extra words are harmless, because the caller cleans up the stack.
pub fn call(entry: Entry, words: &[Word]) -> u32 {
    let (mut registers, mut stack) = (Vec::new(), Vec::new());
    for word in words {
        match word {
            Word::One(word) if registers.len() < REGISTERS => registers.push(*word),
            Word::One(word) => stack.push(*word),
            // Passed in memory: on the stack on x86-64, as a pointer to a copy on other architectures.
            Word::Three(three) if cfg!(target_arch = "x86_64") => stack.extend(three),
            Word::Three(three) => {
                let to = three.as_ptr().expose_provenance() as u64;
                if registers.len() < REGISTERS { registers.push(to) } else { stack.push(to) }
            }
        }
    }
    registers.resize(REGISTERS, 0);
    assert!(stack.len() <= STACK, "no entry has so many arguments");
    stack.resize(STACK, 0);
    invoke(entry, &registers, &stack)
}

macro_rules! raw {
    ($ty:ident $n:literal) => {
        $ty
    };
}
macro_rules! invoke {
    ($($r:literal)*; $($s:literal)*) => {
        fn invoke(entry: Entry, registers: &[u64], stack: &[u64]) -> u32 {
            type Wide = unsafe extern "C" fn($(raw!(u64 $r),)* $(raw!(u64 $s),)*) -> u32;
            // SAFETY: both types are function pointers; the words are where the callee expects its arguments.
            let entry = unsafe { std::mem::transmute::<Entry, Wide>(entry) };
            // SAFETY: the behaviour of the entry with wrong arguments is what is tested, in a process of its
            // own.
            unsafe { entry($(registers[$r],)* $(stack[$s],)*) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
invoke!(0 1 2 3 4 5; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23);
#[cfg(not(target_arch = "x86_64"))]
invoke!(0 1 2 3 4 5 6 7; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23);

#[cfg(test)]
mod tests {
    use super::*;
    use ur_sys::ur_rect_offset_t;

    unsafe extern "C" fn sum(
        a: u32,
        b: ur_rect_offset_t,
        c: bool,
        d: u64,
        e: u64,
        f: u64,
        g: u64,
        h: u64,
        i: ur_rect_offset_t,
        j: u64,
    ) -> u32 {
        let parts = [u64::from(a), b.x, b.z, u64::from(c), d, e, f, g, h, i.x, i.y, j];
        parts.iter().fold(0, |all, part| all * 3 + *part as u32)
    }
    #[test]
    fn words_arrive_where_c_has_them() {
        // SAFETY: both types are function pointers.
        let entry = unsafe { std::mem::transmute::<*const (), Entry>(sum as *const ()) };
        let one = Word::One;
        let (b, i) = (Word::Three([2, 9, 3]), Word::Three([10, 11, 9]));
        let words = [one(1), b, one(1), one(5), one(6), one(7), one(8), one(9), i, one(12)];
        let parts: [u32; 12] = [1, 2, 3, 1, 5, 6, 7, 8, 9, 10, 11, 12];
        assert_eq!(call(entry, &words), parts.iter().fold(0, |all, part| all * 3 + part));
    }
}
