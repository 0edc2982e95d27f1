//! `info::Answer` with any buffer: the rules about sizes hold, and no byte outside the buffer changes.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use proptest::prelude::*;
use std::ptr;
use ur_adapter::{error::ErrorCode, info::Answer};

const CANARY: u8 = 0xa5;

/// What a caller with a buffer of `size` bytes gets as one answer.
#[derive(Debug, PartialEq)]
struct Seen {
    result: Result<(), ErrorCode>,
    bytes: Vec<u8>,
    told: Option<usize>,
}
/// Queries with a buffer of `size` bytes (none for `None`), and with or without a place for the size.
fn ask(
    size: Option<usize>,
    wants_size: bool,
    answer: impl FnOnce(&mut Answer<'_>) -> ur_adapter::error::Result<()>,
) -> Seen {
    const SPARE: usize = 64;
    const UNTOLD: usize = usize::MAX;
    let room = size.unwrap_or(0);
    let mut buffer = vec![CANARY; room + SPARE];
    let mut told = UNTOLD;
    let value = if size.is_some() { buffer.as_mut_ptr().cast() } else { ptr::null_mut() };
    let to = if wants_size { &raw mut told } else { ptr::null_mut() };
    let result = unsafe { Answer::new(room, value, to) }.and_then(|mut a| answer(&mut a));
    assert!(buffer[room..].iter().all(|b| *b == CANARY), "wrote beyond the buffer");
    buffer.truncate(room);
    let told = (told != UNTOLD).then_some(told);
    Seen { result: result.map_err(|e| e.code()), bytes: buffer, told }
}
/// What a caller must get for an answer of these bytes according to the ABI.
fn expected(size: Option<usize>, wants_size: bool, answer: &[u8]) -> Seen {
    let untouched = vec![CANARY; size.unwrap_or(0)];
    let refused = |code| Seen { result: Err(code), bytes: untouched.clone(), told: None };
    let told = wants_size.then_some(answer.len());
    match size {
        Some(0) => refused(ErrorCode::InvalidSize),
        None if !wants_size => refused(ErrorCode::InvalidNullPointer),
        None => Seen { result: Ok(()), bytes: untouched, told },
        Some(size) if size < answer.len() => {
            Seen { result: Err(ErrorCode::InvalidSize), bytes: untouched, told }
        }
        Some(_) => {
            let mut bytes = untouched;
            bytes[..answer.len()].copy_from_slice(answer);
            Seen { result: Ok(()), bytes, told }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: match (cfg!(miri), std::env::var_os("CAUSEWAY_LONG").is_some()) {
            (false, _) => 512,
            (true, true) => 16,
            (true, false) => 4,
        },
        failure_persistence: None, // Miri has no files
        ..ProptestConfig::default()
    })]

    #[test]
    fn arrays_are_answered_whole_or_not_at_all(
        values in proptest::collection::vec(any::<u32>(), 0..20),
        size in proptest::option::of(0usize..100),
        wants_size: bool,
    ) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let seen = ask(size, wants_size, |a| a.slice(&values));
        prop_assert_eq!(seen, expected(size, wants_size, &bytes));
    }
    #[test]
    fn a_value_is_an_array_of_one(
        value: u64,
        size in proptest::option::of(0usize..12),
        wants_size: bool,
    ) {
        let seen = ask(size, wants_size, |a| a.value(&value));
        prop_assert_eq!(seen, expected(size, wants_size, &value.to_ne_bytes()));
    }
    #[test]
    fn strings_end_with_their_only_nul(
        text in "[a-zé\0 ]{0,20}",
        size in proptest::option::of(0usize..60),
        wants_size: bool,
    ) {
        let mut bytes = text.replace('\0', " ").into_bytes();
        bytes.push(0);
        let seen = ask(size, wants_size, |a| a.str(&text));
        prop_assert_eq!(seen, expected(size, wants_size, &bytes));
    }
    #[test]
    fn truths_take_one_byte(value: bool, size in proptest::option::of(0usize..3), wants_size: bool) {
        let seen = ask(size, wants_size, |a| a.bool(value));
        prop_assert_eq!(seen, expected(size, wants_size, &[u8::from(value)]));
    }
    #[test]
    fn asking_for_the_size_first_always_succeeds_with_that_size(
        values in proptest::collection::vec(any::<u16>(), 1..30),
    ) {
        let first = ask(None, true, |a| a.slice(&values));
        let size = first.told;
        prop_assert_eq!(first.result, Ok(()));
        let second = ask(size, false, |a| a.slice(&values));
        prop_assert_eq!(second.result, Ok(()));
    }
}
