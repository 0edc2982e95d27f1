//! Programs that get memory, address ranges and IPC handles, and give them back or leak them.
use super::*;

/// The sizes of what the leaking programs keep, all different so that reports can be told apart.
const KEPT: [usize; 4] = [101, 102, 103, 104];

fn granularity(world: &World, context: ur_context_handle_t) -> usize {
    let ask = ur_virtual_mem_granularity_info_t::RECOMMENDED;
    let (device, room) = (world.device, size_of::<usize>());
    made(0usize, |to| unsafe {
        let to = to.cast();
        virtual_mem_granularity_get_info(context, device, 1, ask, room, to, null_mut())
    })
}
fn pool(context: ur_context_handle_t) -> ur_usm_pool_handle_t {
    let mut desc = ur_usm_pool_desc_t {
        stype: ur_structure_type_t::USM_POOL_DESC,
        pNext: null_mut(),
        flags: ur_usm_pool_flags_t(0),
    };
    made(ur_usm_pool_handle_t::NULL, |to| unsafe { usm_pool_create(context, &mut desc, to) })
}
fn device_memory(
    world: &World,
    context: ur_context_handle_t,
    pool: ur_usm_pool_handle_t,
    size: usize,
) -> *mut c_void {
    let device = world.device;
    made(null_mut(), |to| unsafe { usm_device_alloc(context, device, null(), pool, size, to) })
}
fn shared_memory(world: &World, context: ur_context_handle_t, size: usize) -> *mut c_void {
    let (device, pool) = (world.device, ur_usm_pool_handle_t::NULL);
    made(null_mut(), |to| unsafe { usm_shared_alloc(context, device, null(), pool, size, to) })
}
/// Three rows, and the pitch.
fn pitched_memory(world: &World, context: ur_context_handle_t) -> (*mut c_void, usize) {
    let (device, pool, mut pitch) = (world.device, ur_usm_pool_handle_t::NULL, 0);
    let at = made(null_mut(), |to| unsafe {
        usm_pitched_alloc_exp(context, device, null(), pool, SIZE, 3, 4, to, &mut pitch)
    });
    (at, pitch)
}
fn async_memory(queue: ur_queue_handle_t, size: usize) -> *mut c_void {
    let (pool, none) = (ur_usm_pool_handle_t::NULL, null_mut());
    made(null_mut(), |to| unsafe {
        enqueue_usm_device_alloc_exp(queue, pool, size, null(), 0, null(), to, none)
    })
}
fn ticket(context: ur_context_handle_t, at: *mut c_void) -> (*mut c_void, usize) {
    let mut size = 0;
    let ticket =
        made(null_mut(), |to| unsafe { ipc_get_mem_handle_exp(context, at, to, &mut size) });
    (ticket, size)
}
fn open(
    world: &World,
    context: ur_context_handle_t,
    (ticket, size): (*mut c_void, usize),
) -> *mut c_void {
    let device = world.device;
    made(null_mut(), |to| unsafe { ipc_open_mem_handle_exp(context, device, ticket, size, to) })
}

/// Gets one of each resource, and gives each back in every possible way.
pub fn given_back(world: &World) {
    unsafe {
        let context = world.context();
        let queue = world.queue(context);
        let (no_pool, none) = (ur_usm_pool_handle_t::NULL, null_mut());
        ok(usm_free(context, host_memory(context)));
        ok(usm_free(context, shared_memory(world, context, SIZE)));
        ok(usm_free(context, pitched_memory(world, context).0));
        // Memory can be freed in queue order or at once, however it was allocated.
        let at = device_memory(world, context, no_pool, SIZE);
        ok(enqueue_usm_free_exp(queue, no_pool, at, 0, null(), none));
        let at = async_memory(queue, SIZE);
        ok(enqueue_usm_free_exp(queue, no_pool, at, 0, null(), none));
        let at = async_memory(queue, SIZE);
        ok(queue_finish(queue));
        ok(usm_free(context, at));
        // The last release of a pool frees its memory.
        let pool = pool(context);
        for size in [SIZE, 1 << 22] {
            device_memory(world, context, pool, size);
        }
        ok(usm_pool_retain(pool));
        ok(usm_pool_release(pool));
        ok(usm_free(context, device_memory(world, context, pool, SIZE)));
        ok(usm_pool_release(pool));
        // Closed as many times as opened, and put back as many times as taken.
        let at = device_memory(world, context, no_pool, SIZE);
        let tickets = [ticket(context, at), ticket(context, at)];
        let opened = [0, 0, 1].map(|i| open(world, context, tickets[i]));
        for at in opened {
            ok(ipc_close_mem_handle_exp(context, at));
        }
        for (ticket, _) in tickets {
            ok(ipc_put_mem_handle_exp(context, ticket));
        }
        ok(usm_free(context, at));
        let size = granularity(world, context);
        let at = made(null_mut(), |to| virtual_mem_reserve(context, null(), size, to));
        ok(virtual_mem_free(context, at, size));
        ok(queue_release(queue));
        ok(context_release(context));
    }
}
/// Leaks one of each resource; prints the sizes that the test cannot know.
#[inline(never)]
pub fn kept(world: &World) {
    unsafe {
        let context = world.context();
        let queue = world.queue(context);
        let no_pool = ur_usm_pool_handle_t::NULL;
        host_memory(context);
        let shared = device_memory(world, context, no_pool, KEPT[0]);
        shared_memory(world, context, KEPT[1]);
        async_memory(queue, KEPT[2]);
        let pool = pool(context);
        ok(usm_pool_retain(pool));
        device_memory(world, context, pool, KEPT[3]);
        ok(usm_pool_release(pool));
        let (_, pitch) = pitched_memory(world, context);
        let size = granularity(world, context);
        made(null_mut(), |to| virtual_mem_reserve(context, null(), size, to));
        let ticket = ticket(context, shared);
        let opened = [(); 3].map(|()| open(world, context, ticket));
        ok(ipc_close_mem_handle_exp(context, opened[0]));
        println!("PITCHED={} RANGE={size} TICKET={}", pitch * 3, ticket.1);
        ok(queue_finish(queue));
        ok(queue_release(queue));
        ok(context_release(context));
    }
}
/// Makes every call fail that would get or give back a resource; resources that were not given back are
/// leaked.
pub fn given_back_in_vain(world: &World) {
    unsafe {
        let context = world.context();
        let no_pool = ur_usm_pool_handle_t::NULL;
        let mut at = null_mut();
        let failed = |result| assert_ne!(result, ur_result_t::SUCCESS);
        failed(usm_host_alloc(context, null(), no_pool, 0, &mut at));
        failed(usm_device_alloc(context, world.device, null(), no_pool, usize::MAX, &mut at));
        failed(virtual_mem_reserve(context, null(), 1, &mut at));
        let mut size = 0;
        let mut own = 0u64;
        let own: *mut c_void = (&raw mut own).cast();
        failed(ipc_get_mem_handle_exp(context, own, &mut at, &mut size));
        failed(ipc_open_mem_handle_exp(context, world.device, own, 3, &mut at));
        failed(ipc_close_mem_handle_exp(context, own));
        // A part of a range cannot be freed.
        let size = granularity(world, context) * 2;
        let range = made(null_mut(), |to| virtual_mem_reserve(context, null(), size, to));
        failed(virtual_mem_free(context, range, size / 2));
        // Memory of another context cannot be freed, and memory that was not opened cannot be closed.
        let other = world.context();
        let memory = device_memory(world, context, no_pool, KEPT[0]);
        failed(usm_free(other, memory));
        failed(ipc_close_mem_handle_exp(context, memory));
        println!("RANGE={size}");
        ok(context_release(other));
        ok(context_release(context));
    }
}
