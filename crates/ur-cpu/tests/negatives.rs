//! What C programs get wrong: null pointers, wrong kinds of handle, released handles, at every entry that sharing needs.
//! The code is the documented one, and what was to be written to is left as it was.
mod common;
use common::{scene::*, ur::*, *};
use std::{ffi::c_void, ptr::null_mut};
use ur_result_t as R;

#[test]
fn role() {
    common::role();
}

#[test]
fn get_of_memory_checks_context_pointer_and_places() {
    alone(|| {
        let s = Scene::new();
        let (c, m) = (s.ur.context, s.memory);
        for (wrong, code) in s.contexts() {
            untouched(code, |to, n| call!(ipc_exp.get_mem_handle_exp(wrong, m, to.cast(), n)));
        }
        let null_pointer = R::ERROR_INVALID_NULL_POINTER;
        untouched(null_pointer, |to, n| {
            call!(ipc_exp.get_mem_handle_exp(c, null_mut(), to.cast(), n))
        });
        untouched(null_pointer, |_, n| call!(ipc_exp.get_mem_handle_exp(c, m, null_mut(), n)));
        untouched(null_pointer, |to, _| {
            call!(ipc_exp.get_mem_handle_exp(c, m, to.cast(), null_mut()))
        });
        let mut local = 0_u64;
        untouched(R::ERROR_INVALID_VALUE, |to, n| {
            call!(ipc_exp.get_mem_handle_exp(c, (&raw mut local).cast(), to.cast(), n))
        });
        let other = s.ur.new_context();
        untouched(R::ERROR_INVALID_VALUE, |to, n| {
            call!(ipc_exp.get_mem_handle_exp(other, m, to.cast(), n))
        });
    });
}
#[test]
fn get_of_physical_memory_and_events_checks_handles_and_places() {
    alone(|| {
        let s = Scene::new();
        let (c, p) = (s.ur.context, s.physical);
        let null_pointer = R::ERROR_INVALID_NULL_POINTER;
        for (wrong, code) in s.contexts() {
            untouched(code, |to, n| call!(ipc_exp.get_phys_mem_handle_exp(wrong, p, to.cast(), n)));
        }
        for (wrong, code) in s.physicals() {
            untouched(code, |to, n| call!(ipc_exp.get_phys_mem_handle_exp(c, wrong, to.cast(), n)));
        }
        untouched(null_pointer, |_, n| call!(ipc_exp.get_phys_mem_handle_exp(c, p, null_mut(), n)));
        untouched(null_pointer, |to, _| {
            call!(ipc_exp.get_phys_mem_handle_exp(c, p, to.cast(), null_mut()))
        });
        for (wrong, code) in s.events() {
            untouched(code, |to, n| call!(ipc_exp.get_event_handle_exp(wrong, to.cast(), n)));
        }
        untouched(null_pointer, |_, n| call!(ipc_exp.get_event_handle_exp(s.event, null_mut(), n)));
        untouched(null_pointer, |to, _| {
            call!(ipc_exp.get_event_handle_exp(s.event, to.cast(), null_mut()))
        });
    });
}
#[test]
fn put_checks_context_and_pointer_and_takes_only_its_own_kind() {
    alone(|| {
        let s = Scene::new();
        let puts = [
            |c, data| call!(ipc_exp.put_mem_handle_exp(c, data)),
            |c, data: *mut c_void| call!(ipc_exp.put_phys_mem_handle_exp(c, data)),
            |c, data| call!(ipc_exp.put_event_handle_exp(c, data)),
        ];
        for (kind, put) in puts.iter().enumerate() {
            for (wrong, code) in s.contexts() {
                assert_eq!(put(wrong, s.given[kind].data), code);
            }
            assert_eq!(put(s.ur.context, null_mut()), R::ERROR_INVALID_NULL_POINTER);
            for other in (0..3).filter(|other| *other != kind) {
                assert_eq!(put(s.ur.context, s.given[other].data), R::ERROR_INVALID_VALUE);
            }
            let middle = s.given[kind].data.wrapping_byte_add(1);
            assert_eq!(put(s.ur.context, middle), R::ERROR_INVALID_VALUE);
            assert_eq!(put(s.ur.context, s.given[kind].data), R::SUCCESS);
            assert_eq!(put(s.ur.context, s.given[kind].data), R::ERROR_INVALID_VALUE);
        }
    });
}
type Open<'a> =
    &'a dyn Fn(ur_context_handle_t, ur_device_handle_t, *mut c_void, usize, *mut c_void) -> R;
#[test]
fn open_checks_context_device_bytes_and_place() {
    alone(|| {
        let s = Scene::new();
        let opens: [Open<'_>; 3] = [
            &|c, d, data, n, to| call!(ipc_exp.open_mem_handle_exp(c, d, data, n, to.cast())),
            &|c, d, data, n, to| call!(ipc_exp.open_phys_mem_handle_exp(c, d, data, n, to.cast())),
            &|c, _, data, n, to| call!(ipc_exp.open_event_handle_exp(c, data, n, to.cast())),
        ];
        for (kind, open) in opens.iter().enumerate() {
            let (c, d, given) = (s.ur.context, s.ur.device, &s.given[kind]);
            let (data, size) = (given.data, given.bytes.len());
            for (wrong, code) in s.contexts() {
                untouched(code, |to, _| open(wrong, d, data, size, to));
            }
            for (wrong, code) in s.devices() {
                if kind < 2 {
                    untouched(code, |to, _| open(c, wrong, data, size, to));
                }
            }
            untouched(R::ERROR_INVALID_NULL_POINTER, |to, _| open(c, d, null_mut(), size, to));
            assert_eq!(open(c, d, data, size, null_mut()), R::ERROR_INVALID_NULL_POINTER);
            for wrong in [0, 1, size - 1, size + 1, usize::MAX] {
                untouched(R::ERROR_INVALID_VALUE, |to, _| open(c, d, data, wrong, to));
            }
            for other in (0..3).filter(|other| *other != kind) {
                let data = s.given[other].data;
                untouched(R::ERROR_INVALID_VALUE, |to, _| open(c, d, data, size, to));
            }
        }
    });
}
#[test]
fn close_checks_context_and_what_it_is_given() {
    alone(|| {
        let s = Scene::new();
        let opened = s.ur.open(Kind::Memory, &s.given[0].bytes).unwrap();
        let physical =
            ur_physical_mem_handle_t(s.ur.open(Kind::Physical, &s.given[1].bytes).unwrap());
        for (wrong, code) in s.contexts() {
            assert_eq!(call!(ipc_exp.close_mem_handle_exp(wrong, opened)), code);
            assert_eq!(call!(ipc_exp.close_phys_mem_handle_exp(wrong, physical)), code);
        }
        for (wrong, code) in s.physicals() {
            assert_eq!(call!(ipc_exp.close_phys_mem_handle_exp(s.ur.context, wrong)), code);
        }
        let c = s.ur.context;
        let null_pointer = R::ERROR_INVALID_NULL_POINTER;
        assert_eq!(call!(ipc_exp.close_mem_handle_exp(c, null_mut())), null_pointer);
        let beside = opened.wrapping_byte_add(8);
        assert_eq!(call!(ipc_exp.close_mem_handle_exp(c, beside)), R::ERROR_INVALID_VALUE);
        let own = call!(ipc_exp.close_phys_mem_handle_exp(c, s.physical));
        assert_eq!(own, R::ERROR_INVALID_VALUE);
        assert_eq!(call!(ipc_exp.close_mem_handle_exp(c, opened)), R::SUCCESS);
        assert_eq!(call!(ipc_exp.close_mem_handle_exp(c, opened)), R::ERROR_INVALID_VALUE);
        assert_eq!(call!(ipc_exp.close_phys_mem_handle_exp(c, physical)), R::SUCCESS);
        let again = call!(ipc_exp.close_phys_mem_handle_exp(c, physical));
        assert_eq!(again, R::ERROR_INVALID_MEM_OBJECT);
    });
}
