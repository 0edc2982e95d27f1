//! The same for the entries around sharing: memory, physical and virtual memory, events and queues.
#![expect(unsafe_code, reason = "plays the C caller")]
mod common;
use common::{scene::*, ur::*, *};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}
const NULL_POINTER: R = R::ERROR_INVALID_NULL_POINTER;

type Alloc<'a> = &'a dyn Fn(
    ur_context_handle_t,
    ur_device_handle_t,
    *const ur_usm_desc_t,
    usize,
    *mut c_void,
) -> R;
#[test]
fn allocations_check_context_device_descriptor_size_and_place() {
    alone(|| {
        let s = Scene::new();
        let (c, d) = (s.ur.context, s.ur.device);
        let pool = ur_usm_pool_handle_t::NULL;
        let allocs: [Alloc<'_>; 3] = [
            &|c, d, desc, n, to| call!(usm.device_alloc(c, d, desc, pool, n, to.cast())),
            &|c, d, desc, n, to| call!(usm.shared_alloc(c, d, desc, pool, n, to.cast())),
            &|c, _, desc, n, to| call!(usm.host_alloc(c, desc, pool, n, to.cast())),
        ];
        for (which, alloc) in allocs.iter().enumerate() {
            for (wrong, code) in s.contexts() {
                untouched(code, |to, _| alloc(wrong, d, null(), 64, to));
            }
            for (wrong, code) in s.devices() {
                if which < 2 {
                    untouched(code, |to, _| alloc(c, wrong, null(), 64, to));
                }
            }
            for size in [0, usize::MAX, 1 << 60] {
                let code = R::ERROR_INVALID_USM_SIZE;
                untouched(code, |to, _| alloc(c, d, null(), size, to));
            }
            assert_eq!(alloc(c, d, null(), 64, null_mut()), NULL_POINTER);
            let stype = ur_structure_type_t::USM_DESC;
            let hints = ur_usm_advice_flags_t::default();
            let desc = ur_usm_desc_t { stype, pNext: null(), hints, align: 3 };
            untouched(R::ERROR_INVALID_VALUE, |to, _| alloc(c, d, &desc, 64, to));
        }
    });
}
#[test]
fn free_and_queries_of_allocations_check_what_they_are_given() {
    alone(|| {
        let s = Scene::new();
        let c = s.ur.context;
        for (wrong, code) in s.contexts() {
            assert_eq!(call!(usm.free(wrong, s.memory)), code);
        }
        assert_eq!(call!(usm.free(c, null_mut())), NULL_POINTER);
        let invalid = R::ERROR_INVALID_MEM_OBJECT;
        assert_eq!(call!(usm.free(c, s.memory.wrapping_byte_add(8))), invalid);
        let mut local = 0_u64;
        assert_eq!(call!(usm.free(c, (&raw mut local).cast())), invalid);
        let info = ur_usm_alloc_info_t::SIZE;
        for (wrong, code) in s.contexts() {
            untouched(code, |to, n| call!(usm.get_mem_alloc_info(wrong, s.memory, info, 8, to, n)));
        }
        untouched(NULL_POINTER, |to, n| call!(usm.get_mem_alloc_info(c, null(), info, 8, to, n)));
        let unknown = ur_usm_alloc_info_t(0x7000);
        untouched(R::ERROR_INVALID_ENUMERATION, |to, n| {
            call!(usm.get_mem_alloc_info(c, s.memory, unknown, 8, to, n))
        });
        let mut value = UNTOUCHED;
        let to = (&raw mut value).cast();
        let small = call!(usm.get_mem_alloc_info(c, s.memory, info, 4, to, null_mut()));
        assert_eq!((small, value), (R::ERROR_INVALID_SIZE, UNTOUCHED));
        assert_eq!(call!(usm.free(c, s.memory)), R::SUCCESS);
        assert_eq!(call!(usm.free(c, s.memory)), invalid, "a second free");
    });
}
#[test]
fn physical_memory_checks_handles_sizes_and_places() {
    alone(|| {
        let s = Scene::new();
        let (c, d) = (s.ur.context, s.ur.device);
        for (wrong, code) in s.contexts() {
            untouched(code, |to, _| {
                call!(physical_mem.create(wrong, d, 1 << 20, null(), to.cast()))
            });
        }
        for (wrong, code) in s.devices() {
            untouched(code, |to, _| {
                call!(physical_mem.create(c, wrong, 1 << 20, null(), to.cast()))
            });
        }
        for size in [0, 1, 4097] {
            untouched(R::ERROR_INVALID_SIZE, |to, _| {
                call!(physical_mem.create(c, d, size, null(), to.cast()))
            });
        }
        let none = call!(physical_mem.create(c, d, 1 << 20, null(), null_mut()));
        assert_eq!(none, NULL_POINTER);
        let flags = ur_physical_mem_flags_t(1 << 30);
        let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
        let unknown = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
        untouched(R::ERROR_INVALID_ENUMERATION, |to, _| {
            call!(physical_mem.create(c, d, 1 << 20, &unknown, to.cast()))
        });
        for (wrong, code) in s.physicals() {
            assert_eq!(call!(physical_mem.retain(wrong)), code);
            assert_eq!(call!(physical_mem.release(wrong)), code);
            let info = ur_physical_mem_info_t::SIZE;
            untouched(code, |to, n| call!(physical_mem.get_info(wrong, info, 8, to, n)));
        }
    });
}
#[test]
fn virtual_memory_checks_context_ranges_and_places() {
    alone(|| {
        let s = Scene::new();
        let (c, p, size) = (s.ur.context, s.physical, 1 << 20);
        let access = ur_virtual_mem_access_flags_t::READ_WRITE;
        let mut at = null_mut();
        assert_eq!(call!(virtual_mem.reserve(c, null(), size, &mut at)), R::SUCCESS);
        for (wrong, code) in s.contexts() {
            untouched(code, |to, _| call!(virtual_mem.reserve(wrong, null(), size, to.cast())));
            assert_eq!(call!(virtual_mem.map(wrong, at, size, p, 0, access)), code);
            assert_eq!(call!(virtual_mem.unmap(wrong, at, size)), code);
            assert_eq!(call!(virtual_mem.set_access(wrong, at, size, access)), code);
            assert_eq!(call!(virtual_mem.free(wrong, at, size)), code);
        }
        for (wrong, code) in s.physicals() {
            assert_eq!(call!(virtual_mem.map(c, at, size, wrong, 0, access)), code);
        }
        assert_eq!(call!(virtual_mem.reserve(c, null(), size, null_mut())), NULL_POINTER);
        assert_eq!(call!(virtual_mem.map(c, null(), size, p, 0, access)), NULL_POINTER);
        assert_eq!(call!(virtual_mem.unmap(c, null(), size)), NULL_POINTER);
        assert_eq!(call!(virtual_mem.free(c, null(), size)), NULL_POINTER);
        let unknown = ur_virtual_mem_access_flags_t(1 << 30);
        let code = call!(virtual_mem.map(c, at, size, p, 0, unknown));
        assert_eq!(code, R::ERROR_INVALID_ENUMERATION);
        let refused = |code| {
            assert!(matches!(code, R::ERROR_INVALID_VALUE | R::ERROR_INVALID_SIZE), "{code:?}");
        };
        refused(call!(virtual_mem.map(c, at, size, p, 4096, access))); // beyond its end
        refused(call!(virtual_mem.map(c, at, 2 * size, p, 0, access)));
        refused(call!(virtual_mem.map(c, at.wrapping_byte_add(1), size, p, 0, access)));
        refused(call!(virtual_mem.map(c, s.memory, size, p, 0, access))); // nothing reserved
        refused(call!(virtual_mem.free(c, s.memory, size)));
        assert_eq!(call!(virtual_mem.map(c, at, size, p, 0, access)), R::SUCCESS);
        refused(call!(virtual_mem.map(c, at, size, p, 0, access))); // twice
        assert_eq!(call!(virtual_mem.unmap(c, at, size)), R::SUCCESS);
        assert_eq!(call!(virtual_mem.free(c, at, size)), R::SUCCESS);
        refused(call!(virtual_mem.free(c, at, size)));
    });
}
#[test]
fn events_check_handles_descriptors_and_places() {
    alone(|| {
        let s = Scene::new();
        let (c, d) = (s.ur.context, s.ur.device);
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let flags = ur_exp_event_flags_t::IPC_EXP;
        let good = ur_exp_event_desc_t { stype, pNext: null(), flags };
        for (wrong, code) in s.contexts() {
            untouched(code, |to, _| call!(event_exp.create_exp(wrong, d, &good, to.cast())));
        }
        for (wrong, code) in s.devices() {
            untouched(code, |to, _| call!(event_exp.create_exp(c, wrong, &good, to.cast())));
        }
        untouched(NULL_POINTER, |to, _| call!(event_exp.create_exp(c, d, null(), to.cast())));
        assert_eq!(call!(event_exp.create_exp(c, d, &good, null_mut())), NULL_POINTER);
        let unknown = ur_exp_event_desc_t { flags: ur_exp_event_flags_t(1 << 20), ..good };
        untouched(R::ERROR_INVALID_ENUMERATION, |to, _| {
            call!(event_exp.create_exp(c, d, &unknown, to.cast()))
        });
        let status = ur_event_info_t::COMMAND_EXECUTION_STATUS;
        for (wrong, code) in s.events() {
            assert_eq!(call!(event.retain(wrong)), code);
            assert_eq!(call!(event.release(wrong)), code);
            untouched(code, |to, n| call!(event.get_info(wrong, status, 4, to, n)));
            let start = ur_profiling_info_t::COMMAND_START;
            untouched(code, |to, n| call!(event.get_profiling_info(wrong, start, 8, to, n)));
            let complete = ur_execution_info_t::COMPLETE;
            let code_of_call = call!(event.set_callback(wrong, complete, Some(never), null_mut()));
            assert_eq!(code_of_call, code);
        }
        let start = ur_profiling_info_t::COMMAND_START;
        untouched(R::ERROR_PROFILING_INFO_NOT_AVAILABLE, |to, _| {
            call!(event.get_profiling_info(s.event, start, 8, to, null_mut()))
        });
        untouched(R::ERROR_INVALID_SIZE, |to, _| {
            call!(event.get_info(s.event, status, 2, to, null_mut()))
        });
        let complete = ur_execution_info_t::COMPLETE;
        let none = call!(event.set_callback(s.event, complete, None, null_mut()));
        assert_eq!(none, NULL_POINTER);
    });
}
unsafe extern "C" fn never(_: ur_event_handle_t, _: ur_execution_info_t, _: *mut c_void) {
    std::process::abort();
}
#[test]
fn wait_lists_are_refused_whatever_is_wrong_with_them() {
    alone(|| {
        let s = Scene::new();
        let (q, list) = (s.queue, [s.event]);
        assert_eq!(call!(event.wait(0, list.as_ptr())), R::ERROR_INVALID_VALUE);
        assert_eq!(call!(event.wait(1, null())), NULL_POINTER);
        let wait_list = R::ERROR_INVALID_EVENT_WAIT_LIST;
        let (data, n) = (s.memory, 16);
        for (wrong, _) in s.events() {
            let list = [s.event, wrong];
            let l = list.as_ptr();
            assert_ne!(call!(event.wait(2, l)), R::SUCCESS);
            untouched(wait_list, |e, _| call!(enqueue.events_wait(q, 2, l, e.cast())));
            untouched(wait_list, |e, _| call!(enqueue.events_wait_with_barrier(q, 2, l, e.cast())));
            untouched(wait_list, |e, _| {
                call!(enqueue.usm_memcpy(q, false, data, data, n, 2, l, e.cast()))
            });
            untouched(wait_list, |e, _| {
                call!(enqueue.usm_fill(q, data, 1, data.cast_const(), n, 2, l, e.cast()))
            });
            let mut event = s.event;
            let code = call!(enqueue.events_wait_with_barrier_ext(q, null(), 2, l, &mut event));
            assert_eq!((code, event.0), (wait_list, s.event.0));
        }
        // A count without a list, and a list without a count.
        untouched(wait_list, |e, _| call!(enqueue.events_wait(q, 1, null(), e.cast())));
        untouched(wait_list, |e, _| call!(enqueue.events_wait(q, 0, list.as_ptr(), e.cast())));
    });
}
#[test]
fn queues_check_handles_properties_and_places() {
    alone(|| {
        let s = Scene::new();
        let (c, d) = (s.ur.context, s.ur.device);
        for (wrong, code) in s.contexts() {
            untouched(code, |to, _| call!(queue.create(wrong, d, null(), to.cast())));
        }
        for (wrong, code) in s.devices() {
            untouched(code, |to, _| call!(queue.create(c, wrong, null(), to.cast())));
        }
        assert_eq!(call!(queue.create(c, d, null(), null_mut())), NULL_POINTER);
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let flags = ur_queue_flags_t::PRIORITY_LOW | ur_queue_flags_t::PRIORITY_HIGH;
        let both = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        untouched(R::ERROR_INVALID_QUEUE_PROPERTIES, |to, _| {
            call!(queue.create(c, d, &both, to.cast()))
        });
        let (m, info) = (s.memory, ur_queue_info_t::REFERENCE_COUNT);
        for (wrong, code) in s.queues() {
            assert_eq!(call!(queue.retain(wrong)), code);
            assert_eq!(call!(queue.release(wrong)), code);
            assert_eq!(call!(queue.finish(wrong)), code);
            assert_eq!(call!(queue.flush(wrong)), code);
            untouched(code, |to, n| call!(queue.get_info(wrong, info, 4, to, n)));
            untouched(code, |e, _| call!(enqueue.events_wait(wrong, 0, null(), e.cast())));
            untouched(code, |e, _| {
                call!(enqueue.events_wait_with_barrier(wrong, 0, null(), e.cast()))
            });
            untouched(code, |e, _| {
                call!(enqueue.usm_memcpy(wrong, true, m, m, 16, 0, null(), e.cast()))
            });
            untouched(code, |e, _| {
                call!(enqueue.usm_fill(wrong, m, 1, m.cast_const(), 16, 0, null(), e.cast()))
            });
        }
    });
}
#[test]
fn copies_and_fills_check_pointers_and_sizes() {
    alone(|| {
        let s = Scene::new();
        let (q, m, l) = (s.queue, s.memory, null());
        let (nothing, pattern) = (null_mut(), 0x1234_5678_u32);
        let p = (&raw const pattern).cast::<c_void>();
        untouched(NULL_POINTER, |e, _| {
            call!(enqueue.usm_memcpy(q, true, nothing, m, 16, 0, l, e.cast()))
        });
        untouched(NULL_POINTER, |e, _| {
            call!(enqueue.usm_memcpy(q, true, m, null(), 16, 0, l, e.cast()))
        });
        for beyond in [0, 4097, usize::MAX] {
            untouched(R::ERROR_INVALID_SIZE, |e, _| {
                call!(enqueue.usm_memcpy(q, true, m, m, beyond, 0, l, e.cast()))
            });
        }
        untouched(NULL_POINTER, |e, _| {
            call!(enqueue.usm_fill(q, nothing, 4, p, 16, 0, l, e.cast()))
        });
        untouched(NULL_POINTER, |e, _| {
            call!(enqueue.usm_fill(q, m, 4, null(), 16, 0, l, e.cast()))
        });
        for (of_pattern, size) in [(0, 16), (4, 0), (4, 17), (4, 1 << 40)] {
            untouched(R::ERROR_INVALID_SIZE, |e, _| {
                call!(enqueue.usm_fill(q, m, of_pattern, p, size, 0, l, e.cast()))
            });
        }
    });
}
