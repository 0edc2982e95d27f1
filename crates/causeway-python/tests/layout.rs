//! What needs no interpreter: layouts stay inside their memory, and hostile bytes of tickets are refused.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "the modules are the crate's own, which uses all of them"
)]
#[path = "../src/body.rs"]
mod body;
#[path = "../src/dtype.rs"]
mod dtype;
#[path = "../src/layout.rs"]
mod layout;

use body::{Body, Contents};
use dtype::DType;
use layout::Layout;
use proptest::prelude::*;
use std::borrow::Cow;

fn float32() -> DType {
    DType::named("float32").unwrap()
}
fn matrix() -> Layout {
    Layout::contiguous(float32(), &[3, 4]).unwrap()
}

#[test]
fn every_type_comes_back_from_its_name_and_from_dlpack() {
    for name in ["bool", "int64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e8m0fnu"] {
        let dtype = DType::named(name).unwrap();
        assert_eq!(
            (dtype.name(), DType::of_dlpack(dtype.code, dtype.bits, 1)),
            (name, Some(dtype))
        );
    }
    assert_eq!(DType::of_dlpack(2, 32, 4), None, "vectors are no elements here");
    assert_eq!(DType::with_typestr(">f4"), None);
}
#[test]
fn indices_and_slices_stay_in_the_memory() {
    let row = matrix().at(0, -1).unwrap();
    assert_eq!((row.offset, &row.shape[..], row.within(48)), (32, &[4][..], Some(32..48)));
    assert_eq!(matrix().at(0, 3), None);
    let back = matrix().part(1, 3, -1, 4);
    assert_eq!((back.offset, &back.strides[..], back.within(48)), (12, &[4, -1][..], Some(0..48)));
    assert!(!back.is_contiguous());
    let none = matrix().part(0, 3, 1, 0);
    assert_eq!((none.bytes(), none.within(48)), (0, Some(0..0)));
}
#[test]
fn what_leaves_the_memory_or_cannot_be_counted_is_refused() {
    assert_eq!(matrix().within(47), None);
    let with = |shape: &[i64], strides: &[i64], offset| Layout {
        dtype: float32(),
        offset,
        shape: shape.into(),
        strides: strides.into(),
    };
    for wrong in [
        with(&[2], &[-1], 0),
        with(&[2], &[i64::MAX], 0),
        with(&[i64::MAX, i64::MAX], &[0, 0], 0),
        with(&[-1], &[1], 0),
        with(&[1], &[1], 2),
        with(&[1], &[1, 1], 0),
        with(&[0, i64::MAX, i64::MAX], &[1, 1, 1], 0),
        with(&[1], &[1], usize::MAX - 3),
    ] {
        assert_eq!(wrong.within(1 << 20), None, "{wrong:?}");
    }
    assert_eq!(Layout::contiguous(float32(), &[1 << 40, 1 << 40]), None);
    assert_eq!(Layout::contiguous(float32(), &[-1]), None);
}
#[test]
fn runs_are_what_is_contiguous() {
    let runs = |layout: Layout| {
        let (starts, length) = layout.runs();
        (starts.collect::<Vec<_>>(), length)
    };
    assert_eq!(runs(matrix()), (vec![0], 48));
    assert_eq!(runs(matrix().part(1, 0, 1, 2)), (vec![0, 16, 32], 8));
    assert_eq!(runs(matrix().part(1, 0, 2, 2)), (vec![0, 8, 16, 24, 32, 40], 4));
    assert_eq!(
        runs(matrix().part(0, 2, -1, 3).part(1, 3, -2, 2)).0,
        vec![0, -8, -16, -24, -32, -40]
    );
    assert_eq!(runs(matrix().part(0, 0, 1, 0)), (vec![], 0));
    assert_eq!(runs(Layout::contiguous(float32(), &[]).unwrap()), (vec![0], 4));
}
#[test]
fn runs_of_a_broadcast_array_are_not_listed_but_counted_out() {
    let wide = Layout { shape: [1 << 40, 3][..].into(), strides: [0, 1][..].into(), ..matrix() };
    let (mut starts, length) = wide.runs();
    assert_eq!((starts.nth(1000), length), (Some(0), 12));
}
#[test]
fn a_copy_has_its_elements_in_the_order_of_the_original() {
    let with = |shape: &[i64], strides: &[i64]| Layout {
        dtype: float32(),
        offset: 0,
        shape: shape.into(),
        strides: strides.into(),
    };
    for (layout, dense) in [
        (with(&[3, 4], &[4, 1]), [4, 1]),
        (with(&[3, 4], &[1, 3]), [1, 3]),
        (with(&[3, 4], &[2, 100]), [1, 3]),
        (with(&[3, 4], &[1, -3]), [1, 3]),
        (with(&[3, 4], &[0, 1]), [4, 1]),
        (with(&[1, 4], &[1, 7]), [4, 1]),
    ] {
        assert_eq!(layout.dense().strides[..], dense, "{layout:?}");
        assert!(layout.dense().in_order().is_contiguous());
        assert_eq!(layout.in_order().count(), layout.count());
    }
    let cube = with(&[2, 3, 4], &[1, 8, 2]);
    assert_eq!(cube.dense().strides[..], [1, 8, 2]);
    assert_eq!(cube.in_order().shape[..], [3, 4, 2]);
}
#[test]
fn a_ticket_says_what_it_was_made_of_and_nothing_shorter_is_one() {
    let arrays = vec![("a".to_owned(), 0, matrix()), ("b.weight".to_owned(), 1, matrix())];
    for contents in [
        Contents::Array(b"memory".to_vec(), matrix()),
        Contents::Arrays(vec![b"one".to_vec(), b"two".to_vec()], arrays),
        Contents::Event(b"event".to_vec()),
        Contents::Channel(b"ring".to_vec(), matrix(), None),
        Contents::Channel(b"ring".to_vec(), matrix(), Some(b"event".to_vec())),
    ] {
        let (backend, uuid, is_for_same_user) = ("cuda", Some("00ff"), true);
        let body = Body { backend, uuid, is_for_same_user, contents: Cow::Owned(contents) };
        let bytes = body.encode();
        assert_eq!(Body::decode(&bytes), Some(body));
        for length in 0..bytes.len() {
            assert_eq!(Body::decode(&bytes[..length]), None);
        }
        assert_eq!(Body::decode(&[bytes, vec![0]].concat()), None);
    }
}
proptest! {
    #[test]
    fn no_bytes_make_an_array_outside_its_memory(bytes: Vec<u8>, at in 0..200_usize, value: u8, size in 0..4096_usize) {
        let body = Body {
            backend: "",
            uuid: None,
            is_for_same_user: false,
            contents: Cow::Owned(Contents::Array(vec![1, 2, 3], matrix().part(1, 3, -2, 2))),
        };
        let mut damaged = body.encode();
        let length = damaged.len();
        damaged[at % length] = value;
        for bytes in [bytes, damaged] {
            if let Some(Body { contents, .. }) = Body::decode(&bytes)
                && let Contents::Array(_, layout) = &*contents
                && let Some(range) = layout.within(size)
            {
                prop_assert!(range.start <= range.end && range.end <= size);
                prop_assert!(layout.bytes() <= isize::MAX as usize);
            }
        }
    }
}
