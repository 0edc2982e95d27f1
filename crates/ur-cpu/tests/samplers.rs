//! Samplers, as a C program has them: what they are made of, what they tell, what is refused.
mod common;
use common::ur::*;
use std::ptr::{null, null_mut};
use ur_result_t as R;
use ur_sampler_addressing_mode_t as A;
use ur_sampler_filter_mode_t as L;
use ur_sampler_info_t as I;

fn make(ur: &Ur, normalized: bool, addressing: A, filter: L) -> Outcome<ur_sampler_handle_t> {
    let desc = ur_sampler_desc_t {
        stype: ur_structure_type_t::SAMPLER_DESC,
        pNext: null(),
        normalizedCoords: normalized,
        addressingMode: addressing,
        filterMode: filter,
    };
    let mut sampler = ur_sampler_handle_t::NULL;
    ur.check(call!(sampler.create(ur.context, &desc, &mut sampler)))?;
    Ok(sampler)
}
fn info<V: Copy + Default>(ur: &Ur, sampler: ur_sampler_handle_t, name: I) -> Outcome<V> {
    ur.value(|size, to, ret| call!(sampler.get_info(sampler, name, size, to, ret)))
}
const MODES: [A; 5] = [A::NONE, A::CLAMP_TO_EDGE, A::CLAMP, A::REPEAT, A::MIRRORED_REPEAT];

#[test]
fn a_sampler_tells_what_it_was_made_of() {
    let ur = Ur::new();
    let filters = |a| [(a, L::NEAREST), (a, L::LINEAR)];
    let all = MODES.into_iter().flat_map(filters);
    for (normalized, (addressing, filter)) in all.flat_map(|one| [(true, one), (false, one)]) {
        let sampler = make(&ur, normalized, addressing, filter).unwrap();
        assert_eq!(info(&ur, sampler, I::ADDRESSING_MODE), Ok(addressing.0));
        assert_eq!(info(&ur, sampler, I::FILTER_MODE), Ok(filter.0));
        assert_eq!(info(&ur, sampler, I::NORMALIZED_COORDS), Ok(u8::from(normalized)));
        assert_eq!(info(&ur, sampler, I::CONTEXT), Ok(ur.context.0.addr()));
        assert_eq!(call!(sampler.retain(sampler)), R::SUCCESS);
        assert_eq!(info(&ur, sampler, I::REFERENCE_COUNT), Ok(2_u32));
        assert_eq!(call!(sampler.release(sampler)), R::SUCCESS);
        assert_eq!(call!(sampler.release(sampler)), R::SUCCESS);
        assert_eq!(call!(sampler.release(sampler)), R::ERROR_INVALID_SAMPLER);
    }
    let sampler = make(&ur, false, A::CLAMP, L::NEAREST).unwrap();
    let unknown = info::<u32>(&ur, sampler, I(77)).unwrap_err();
    assert_eq!(unknown.code, R::ERROR_INVALID_ENUMERATION);
    assert_eq!(call!(sampler.release(sampler)), R::SUCCESS);
}
#[test]
fn what_makes_no_sampler_is_refused() {
    let ur = Ur::new();
    let cases = [
        (true, A(5), L::NEAREST, R::ERROR_INVALID_ENUMERATION),
        (true, A::NONE, L(2), R::ERROR_INVALID_ENUMERATION),
    ];
    for (normalized, addressing, filter, expected) in cases {
        let refused = make(&ur, normalized, addressing, filter).unwrap_err();
        assert_eq!(refused.code, expected, "{addressing:?} {filter:?}");
    }
    let mut sampler = ur_sampler_handle_t::NULL;
    let null_desc = call!(sampler.create(ur.context, null(), &mut sampler));
    assert_eq!(null_desc, R::ERROR_INVALID_NULL_POINTER);
}
#[test]
fn a_native_handle_is_another_reference_to_the_same_sampler() {
    let ur = Ur::new();
    let sampler = make(&ur, true, A::CLAMP, L::LINEAR).unwrap();
    let (mut native, mut again) = (0, ur_sampler_handle_t::NULL);
    assert_eq!(call!(sampler.get_native_handle(sampler, &mut native)), R::SUCCESS);
    let take = |native, context, to: &mut ur_sampler_handle_t| {
        call!(sampler.create_with_native_handle(native, context, null(), to))
    };
    assert_eq!(take(native, ur.context, &mut again), R::SUCCESS);
    assert_eq!(info(&ur, sampler, I::REFERENCE_COUNT), Ok(2_u32));
    let mut none = ur_sampler_handle_t::NULL;
    assert_eq!(take(native, ur.new_context(), &mut none), R::ERROR_INVALID_CONTEXT);
    assert_eq!(take(native + 4, ur.context, &mut none), R::ERROR_INVALID_SAMPLER);
    assert_eq!(call!(sampler.release(sampler)), R::SUCCESS);
    assert_eq!(info(&ur, again, I::FILTER_MODE), Ok(L::LINEAR.0));
    assert_eq!(call!(sampler.release(again)), R::SUCCESS);
    assert_eq!(take(native, ur.context, &mut none), R::ERROR_INVALID_SAMPLER);
    assert_eq!(call!(sampler.get_native_handle(again, null_mut())), R::ERROR_INVALID_SAMPLER);
}
