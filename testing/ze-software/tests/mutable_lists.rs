//! Lists whose commands are changed after they were recorded, and changes that are not allowed.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod assembler;
mod driver;
use assembler::{module, named, op};
use driver::{NONE, World};
use std::{
    ffi::c_void,
    ptr::{from_ref, null, null_mut},
};
use ze_sys::*;

/// A kernel `k(out, value)` in which each item stores the value in its element.
fn sets() -> Vec<u8> {
    let [void, int, long, triple, out, kind, id_pointer, id] = [1, 2, 3, 4, 5, 6, 7, 8];
    let [function, to, value, label, all, x, at] = [9, 10, 11, 12, 13, 14, 15];
    let head = [named(15, &[6, function], "k", &[id]), op(71, &[id, 11, 28])];
    let types = [
        op(19, &[void]),
        op(21, &[int, 32, 0]),
        op(21, &[long, 64, 0]),
        op(23, &[triple, long, 3]),
        op(32, &[out, 5, int]),
        op(32, &[id_pointer, 1, triple]),
        op(33, &[kind, void, out, int]),
        op(59, &[id_pointer, id, 1]),
    ];
    let body = [
        op(54, &[void, function, 0, kind]),
        op(55, &[out, to]),
        op(55, &[int, value]),
        op(248, &[label]),
        op(61, &[triple, all, id]),
        op(81, &[long, x, all, 0]),
        op(67, &[out, at, to, x]),
        op(62, &[at, value]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(16, &[head.concat(), types.concat(), body.concat()])
}
impl World {
    fn kernel(&self) -> ze_kernel_handle_t {
        let code = sets();
        let desc = ze_module_desc_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_DESC,
            format: ZE_MODULE_FORMAT_IL_SPIRV,
            inputSize: code.len(),
            pInputModule: code.as_ptr(),
            ..Default::default()
        };
        let (mut module, mut kernel) = (null_mut(), null_mut());
        ok!(self.ze, module.pfnCreate(self.context, self.device, &desc, &mut module, null_mut()));
        let (stype, name) = (ZE_STRUCTURE_TYPE_KERNEL_DESC, c"k".as_ptr());
        let desc = ze_kernel_desc_t { stype, pKernelName: name, ..Default::default() };
        ok!(self.ze, kernel.pfnCreate(module, &desc, &mut kernel));
        kernel
    }
    fn mutable(&self) -> ze_command_list_handle_t {
        let mutable = ze_mutable_command_list_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC,
            ..Default::default()
        };
        let desc = ze_command_list_desc_t {
            stype: ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
            pNext: from_ref(&mutable).cast(),
            ..Default::default()
        };
        let mut list = null_mut();
        ok!(self.ze, list.pfnCreate(self.context, self.device, &desc, &mut list));
        list
    }
    fn next(&self, list: ze_command_list_handle_t) -> u64 {
        let stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC;
        let (desc, mut id) = (ze_mutable_command_id_exp_desc_t { stype, ..Default::default() }, 0);
        ok!(self.ze, list_exp.pfnGetNextCommandIdExp(list, &desc, &mut id));
        id
    }
    fn update(&self, list: ze_command_list_handle_t, chain: *const c_void) -> ze_result_t {
        let stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC;
        let desc = ze_mutable_commands_exp_desc_t { stype, pNext: chain, flags: 0 };
        ze!(self.ze, list_exp.pfnUpdateMutableCommandsExp(list, &desc))
    }
    /// Closes the list, runs it and waits.
    fn run(&self, list: ze_command_list_handle_t) {
        let queue = self.queue();
        ok!(self.ze, list.pfnClose(list));
        self.execute(queue, list);
        ok!(self.ze, queue.pfnSynchronize(queue, 30_000_000_000));
        ok!(self.ze, queue.pfnDestroy(queue));
    }
}

#[test]
fn a_launch_takes_other_arguments_groups_and_offsets() {
    let w = World::new();
    let (kernel, list) = (w.kernel(), w.mutable());
    let mut out = [0_u32; 8];
    let (to, one) = (out.as_mut_ptr(), 1_u32);
    let size = size_of::<*mut u32>();
    ok!(w.ze, kernel.pfnSetArgumentValue(kernel, 0, size, from_ref(&to).cast()));
    ok!(w.ze, kernel.pfnSetArgumentValue(kernel, 1, 4, from_ref(&one).cast()));
    ok!(w.ze, kernel.pfnSetGroupSize(kernel, 2, 1, 1));
    let id = w.next(list);
    let groups = ze_group_count_t { groupCountX: 1, groupCountY: 1, groupCountZ: 1 };
    ok!(w.ze, list.pfnAppendLaunchKernel(list, kernel, &groups, NONE, 0, null_mut()));
    w.run(list);
    assert_eq!(out, [1, 1, 0, 0, 0, 0, 0, 0]);

    let more = ze_group_count_t { groupCountX: 2, groupCountY: 1, groupCountZ: 1 };
    let count = ze_mutable_group_count_exp_desc_t {
        stype: ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC,
        pNext: null(),
        commandId: id,
        pGroupCount: &more,
    };
    let offset = ze_mutable_global_offset_exp_desc_t {
        stype: ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC,
        pNext: from_ref(&count).cast(),
        commandId: id,
        offsetX: 3,
        ..Default::default()
    };
    let five = 5_u32;
    let argument = ze_mutable_kernel_argument_exp_desc_t {
        stype: ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
        pNext: from_ref(&offset).cast(),
        commandId: id,
        argIndex: 1,
        argSize: 4,
        pArgValue: from_ref(&five).cast(),
    };
    assert_eq!(w.update(list, from_ref(&argument).cast()), ZE_RESULT_SUCCESS);
    let (queue, mut lists) = (w.queue(), [list]);
    let open = ze!(w.ze, queue.pfnExecuteCommandLists(queue, 1, lists.as_mut_ptr(), null_mut()));
    assert_eq!(open, ZE_RESULT_ERROR_INVALID_ARGUMENT, "a list that was changed is closed first");
    w.run(list);
    assert_eq!(out, [1, 1, 0, 5, 5, 5, 5, 0]);
}
#[test]
fn a_command_takes_other_events() {
    let w = World::new();
    let list = w.mutable();
    let pool = w.pool(ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 4);
    let [before, after, other, done] = [0, 1, 2, 3].map(|i| w.event(pool, i));
    let id = w.next(list);
    w.barrier(list, after, &mut [before]);
    ok!(w.ze, list.pfnClose(list));
    ok!(w.ze, list_exp.pfnUpdateMutableCommandWaitEventsExp(list, id, 1, [other].as_mut_ptr()));
    ok!(w.ze, list_exp.pfnUpdateMutableCommandSignalEventExp(list, id, done));
    ok!(w.ze, event.pfnHostSignal(other));
    w.run(list);
    assert!(w.is_over(done) && !w.is_over(after) && !w.is_over(before));
}
#[test]
fn what_cannot_be_changed_is_refused() {
    let w = World::new();
    let refused = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    let (fixed, list) = (w.recorded(0), w.mutable());
    let stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC;
    let (desc, mut id) = (ze_mutable_command_id_exp_desc_t { stype, ..Default::default() }, 0);
    assert_eq!(ze!(w.ze, list_exp.pfnGetNextCommandIdExp(fixed, &desc, &mut id)), refused);
    let id = w.next(list);
    w.barrier(list, NONE, &mut []);
    w.barrier(list, NONE, &mut []);
    let one = ze_group_count_t { groupCountX: 1, groupCountY: 1, groupCountZ: 1 };
    for id in [id, id + 1, 0] {
        let count = ze_mutable_group_count_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC,
            pNext: null(),
            commandId: id,
            pGroupCount: &one,
        };
        assert_eq!(w.update(list, from_ref(&count).cast()), refused, "{id} is no launch");
    }
}
