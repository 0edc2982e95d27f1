//! USM pools.
use super::*;

fn limits(poolable: usize, chunk: usize) -> ur_usm_pool_limits_desc_t {
    ur_usm_pool_limits_desc_t {
        stype: ur_structure_type_t::USM_POOL_LIMITS_DESC,
        pNext: null(),
        maxPoolableSize: poolable,
        minDriverAllocSize: chunk,
    }
}
fn pool(
    context: ur_context_handle_t,
    limits: *const ur_usm_pool_limits_desc_t,
    flags: ur_usm_pool_flags_t,
) -> ur_usm_pool_handle_t {
    let mut pool = ur_usm_pool_handle_t::NULL;
    let stype = ur_structure_type_t::USM_POOL_DESC;
    let mut desc = ur_usm_pool_desc_t { stype, pNext: limits.cast(), flags };
    let create = TABLE.usm.pool_create.unwrap();
    assert_eq!(unsafe { create(context, &mut desc, &mut pool) }, OK);
    pool
}
fn plain(context: ur_context_handle_t) -> ur_usm_pool_handle_t {
    pool(context, null(), Default::default())
}
fn release(pool: ur_usm_pool_handle_t) {
    assert_eq!(unsafe { TABLE.usm.pool_release.unwrap()(pool) }, OK);
}
fn size(pool: ur_usm_pool_handle_t, name: ur_usm_pool_info_t) -> usize {
    let (mut value, mut other) = (0_usize, 0_usize);
    let get = TABLE.usm.pool_get_info.unwrap();
    assert_eq!(unsafe { get(pool, name, 8, (&raw mut value).cast(), null_mut()) }, OK);
    let get = TABLE.usm_exp.pool_get_info_exp.unwrap();
    assert_eq!(unsafe { get(pool, name, (&raw mut other).cast(), null_mut()) }, OK);
    assert_eq!(value, other, "both entries answer alike");
    value
}

#[test]
fn allocations_of_a_pool_say_so_and_are_counted() {
    use ur_usm_pool_info_t as I;
    let context = context();
    let pool = plain(context);
    for usm in ALL {
        let at = try_alloc(usm, context, null(), pool, 1000).unwrap().cast::<u8>();
        let named = info::<usize>(context, at, ur_usm_alloc_info_t::POOL);
        assert_eq!(named, Ok(pool.0.addr()));
        assert_eq!(size(pool, I::USED_CURRENT_EXP), 1024);
        free(context, at).unwrap();
        assert_eq!(size(pool, I::USED_CURRENT_EXP), 0);
    }
    assert_eq!(size(pool, I::USED_HIGH_EXP), 1024, "never more at a time");
    assert!(size(pool, I::RESERVED_CURRENT_EXP) >= 3 << 20, "chunks stay for the next");
    assert_eq!(size(pool, I::CONTEXT), context.0.addr());
    let trim = TABLE.usm_exp.pool_trim_to_exp.unwrap();
    assert_eq!(unsafe { trim(context, device(), pool, 0) }, OK);
    assert_eq!(size(pool, I::RESERVED_CURRENT_EXP), 0);
    assert!(size(pool, I::RESERVED_HIGH_EXP) >= 3 << 20);
    release(pool);
}
#[test]
fn different_pools_never_share_a_page() {
    let context = context();
    let pools = [limits(100, 1), limits(1 << 20, 1), limits(1 << 20, 1)]
        .map(|limits| pool(context, &limits, Default::default()));
    let mut pages = Vec::new();
    let mut all = Vec::new();
    for (which, &pool) in pools.iter().enumerate() {
        for size in [1, 60, 100, 101, 1000, 5000] {
            let at = try_alloc(Usm::Device, context, null(), pool, size).unwrap().cast::<u8>();
            pages.push((at.addr() / PAGE, which));
            pages.push(((at.addr() + size - 1) / PAGE, which));
            all.push(at);
        }
    }
    pages.sort_unstable();
    let shared = pages.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1);
    assert_eq!(shared, None);
    all.into_iter().for_each(|at| free(context, at).unwrap());
    pools.into_iter().for_each(release);
}
#[test]
fn a_pool_of_zeros_starts_with_zeros() {
    let context = context();
    let (small, large) = (limits(10, 1), limits(1 << 20, 1));
    for limits in [small, large] {
        let dirty = try_alloc(Usm::Device, context, null(), ur_usm_pool_handle_t::NULL, 4096);
        let dirty = dirty.unwrap().cast::<u8>();
        unsafe { dirty.write_bytes(9, 4096) };
        free(context, dirty).unwrap();
        let pool = pool(context, &limits, ur_usm_pool_flags_t::ZERO_INITIALIZE_BLOCK);
        let at = try_alloc(Usm::Device, context, null(), pool, 4096).unwrap().cast::<u8>();
        assert!((0..4096).all(|i| unsafe { at.add(i).read() } == 0));
        free(context, at).unwrap();
        release(pool);
    }
}
#[test]
fn threshold_and_maximum_can_be_set() {
    use ur_usm_pool_info_t as I;
    let context = context();
    let pool = plain(context);
    let set = |name, value: usize, size| unsafe {
        let value = (&raw const value).cast_mut().cast();
        TABLE.usm_exp.pool_set_info_exp.unwrap()(pool, name, value, size)
    };
    assert_eq!(set(I::RELEASE_THRESHOLD_EXP, 0, 8), OK);
    assert_eq!(size(pool, I::RELEASE_THRESHOLD_EXP), 0);
    let at = try_alloc(Usm::Device, context, null(), pool, 10).unwrap();
    free(context, at.cast()).unwrap();
    assert_eq!(size(pool, I::RESERVED_CURRENT_EXP), 0, "nothing is kept");
    assert_eq!(set(I::MAXIMUM_SIZE_EXP, 1 << 20, 8), OK);
    assert_eq!(size(pool, I::MAXIMUM_SIZE_EXP), 1 << 20);
    let full = Err(ur_result_t::ERROR_OUT_OF_RESOURCES);
    assert_eq!(try_alloc(Usm::Device, context, null(), pool, 2 << 20), full);
    assert_eq!(set(I::MAXIMUM_SIZE_EXP, 1, 4), ur_result_t::ERROR_INVALID_SIZE);
    assert_eq!(set(I::USED_HIGH_EXP, 1, 8), ur_result_t::ERROR_INVALID_VALUE);
    release(pool);
}
#[test]
fn a_pool_serves_its_own_context_only() {
    let (ours, others) = (context(), context());
    let pool = plain(ours);
    let refused = Err(ur_result_t::ERROR_INVALID_VALUE);
    assert_eq!(try_alloc(Usm::Device, others, null(), pool, 10), refused);
    let trim = TABLE.usm_exp.pool_trim_to_exp.unwrap();
    assert_eq!(unsafe { trim(others, device(), pool, 0) }, ur_result_t::ERROR_INVALID_VALUE);
    release(pool);
}
