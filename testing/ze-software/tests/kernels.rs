//! Modules from SPIR-V, native binaries and shared objects, and the launches of their kernels.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod assembler;
mod driver;
use assembler::{module, named, op};
use driver::{IN_ORDER, NONE, World};
use std::{
    ffi::{CStr, c_void},
    ptr::{from_ref, null, null_mut},
};
use ze_sys::*;

/// A kernel `k(out, value)` that stores, for each item, the sum of the value, of the specialization constant
/// 7 (40) and of the global `g` (2). `f` is a function without callers, and `k` has the required group size
/// 4, 1, 1.
fn adds() -> Vec<u8> {
    let [void, int, long, triple, out, kind, id_pointer, id] = [1, 2, 3, 4, 5, 6, 7, 8];
    let [special, two, global, function, to, value, label] = [9, 10, 11, 12, 13, 14, 15];
    let [all, x, at, sum, total, kept] = [16, 17, 18, 19, 21, 22];
    let [plain, empty, block] = [23, 24, 25];
    let head = [
        named(15, &[6, function], "k", &[id]),
        op(16, &[function, 17, 4, 1, 1]),
        op(71, &[id, 11, 28]),
        op(71, &[special, 1, 7]),
        named(71, &[global, 41], "g", &[0]),
        named(71, &[empty, 41], "f", &[0]),
    ];
    let types = [
        op(19, &[void]),
        op(21, &[int, 32, 0]),
        op(21, &[long, 64, 0]),
        op(23, &[triple, long, 3]),
        op(32, &[out, 5, int]),
        op(32, &[id_pointer, 1, triple]),
        op(33, &[kind, void, out, int]),
        op(33, &[plain, void]),
        op(50, &[int, special, 40]),
        op(43, &[int, two, 2]),
        op(59, &[id_pointer, id, 1]),
        op(59, &[out, global, 5, two]),
    ];
    let body = [
        op(54, &[void, function, 0, kind]),
        op(55, &[out, to]),
        op(55, &[int, value]),
        op(248, &[label]),
        op(61, &[triple, all, id]),
        op(81, &[long, x, all, 0]),
        op(67, &[out, at, to, x]),
        op(61, &[int, kept, global]),
        op(128, &[int, sum, value, special]),
        op(128, &[int, total, sum, kept]),
        op(62, &[at, total]),
        op(253, &[]),
        op(56, &[]),
        op(54, &[void, empty, 0, plain]),
        op(248, &[block]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(30, &[head.concat(), types.concat(), body.concat()])
}
impl World {
    fn built(
        &self,
        format: ze_module_format_t,
        bytes: &[u8],
        constants: *const ze_module_constants_t,
    ) -> (ze_result_t, ze_module_handle_t, String) {
        let desc = ze_module_desc_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_DESC,
            format,
            inputSize: bytes.len(),
            pInputModule: bytes.as_ptr(),
            pConstants: constants,
            ..Default::default()
        };
        let (mut module, mut log) = (null_mut(), null_mut());
        let code =
            ze!(self.ze, module.pfnCreate(self.context, self.device, &desc, &mut module, &mut log));
        let mut size = 0;
        ok!(self.ze, log.pfnGetString(log, &mut size, null_mut()));
        let mut text = vec![0_u8; size];
        ok!(self.ze, log.pfnGetString(log, &mut size, text.as_mut_ptr().cast()));
        ok!(self.ze, log.pfnDestroy(log));
        let text = CStr::from_bytes_until_nul(&text).unwrap();
        (code, module, text.to_str().unwrap().to_owned())
    }
    fn module(&self, bytes: &[u8]) -> ze_module_handle_t {
        let (code, module, log) = self.built(ZE_MODULE_FORMAT_IL_SPIRV, bytes, null());
        assert_eq!(code, ZE_RESULT_SUCCESS, "{log}");
        module
    }
    fn kernel(&self, module: ze_module_handle_t, name: &CStr) -> ze_kernel_handle_t {
        let stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
        let desc = ze_kernel_desc_t { stype, pKernelName: name.as_ptr(), ..Default::default() };
        let mut kernel = null_mut();
        ok!(self.ze, kernel.pfnCreate(module, &desc, &mut kernel));
        kernel
    }
    fn set<T>(&self, kernel: ze_kernel_handle_t, index: u32, value: &T) {
        let at = from_ref(value).cast();
        ok!(self.ze, kernel.pfnSetArgumentValue(kernel, index, size_of::<T>(), at));
    }
    fn launch(&self, list: ze_command_list_handle_t, kernel: ze_kernel_handle_t, groups: u32) {
        let count = ze_group_count_t { groupCountX: groups, groupCountY: 1, groupCountZ: 1 };
        ok!(self.ze, list.pfnAppendLaunchKernel(list, kernel, &count, NONE, 0, null_mut()));
    }
    /// What the module's `k` stores for eight items.
    fn run(&self, module: ze_module_handle_t, value: u32) -> Vec<u32> {
        let (kernel, list) = (self.kernel(module, c"k"), self.immediate(IN_ORDER));
        let mut out = vec![0_u32; 8];
        self.set(kernel, 0, &out.as_mut_ptr());
        self.set(kernel, 1, &value);
        ok!(self.ze, kernel.pfnSetGroupSize(kernel, 4, 1, 1));
        self.launch(list, kernel, 2);
        self.finish(list);
        ok!(self.ze, kernel.pfnDestroy(kernel));
        out
    }
}

#[test]
fn a_launch_takes_its_arguments_along() {
    let w = World::new();
    let module = w.module(&adds());
    let (kernel, list) = (w.kernel(module, c"k"), w.immediate(IN_ORDER));
    let gate = w.event(w.pool(ZE_EVENT_POOL_FLAG_HOST_VISIBLE, 1), 0);
    let mut out = [[0_u32; 4]; 2];
    w.barrier(list, NONE, &mut [gate]);
    for (n, place) in out.iter_mut().enumerate() {
        w.set(kernel, 0, &place.as_mut_ptr());
        w.set(kernel, 1, &(n as u32 * 100));
        w.launch(list, kernel, 1);
    }
    // Destroyed before the first launch runs: the launch keeps what it needs.
    ok!(w.ze, kernel.pfnDestroy(kernel));
    ok!(w.ze, module.pfnDestroy(module));
    ok!(w.ze, event.pfnHostSignal(gate));
    w.finish(list);
    assert_eq!(out, [[42; 4], [142; 4]]);
}
#[test]
fn a_special_constant_takes_the_value_given() {
    let w = World::new();
    let (ids, value) = ([7_u32], 500_u32);
    let mut values = [from_ref(&value).cast::<c_void>()];
    let mut constants = ze_module_constants_t {
        numConstants: 1,
        pConstantIds: ids.as_ptr(),
        pConstantValues: values.as_mut_ptr(),
    };
    let (code, module, _) = w.built(ZE_MODULE_FORMAT_IL_SPIRV, &adds(), &constants);
    assert_eq!(code, ZE_RESULT_SUCCESS);
    assert_eq!(w.run(module, 1), [503; 8]);
    let others = [8_u32];
    constants.pConstantIds = others.as_ptr();
    let (code, _, log) = w.built(ZE_MODULE_FORMAT_IL_SPIRV, &adds(), &constants);
    assert_eq!(code, ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    assert!(log.contains("no specialization constant 8"), "{log}");
}
#[test]
fn a_native_binary_is_the_same_module() {
    let w = World::new();
    let module = w.module(&adds());
    let mut size = 0;
    ok!(w.ze, module.pfnGetNativeBinary(module, &mut size, null_mut()));
    let mut binary = vec![0; size];
    ok!(w.ze, module.pfnGetNativeBinary(module, &mut size, binary.as_mut_ptr()));
    let (code, again, log) = w.built(ZE_MODULE_FORMAT_NATIVE, &binary, null());
    assert_eq!(code, ZE_RESULT_SUCCESS, "{log}");
    assert_eq!(w.run(again, 3), [45; 8]);
    for end in [0, 4, 8, 12, 20, size / 2, size - 1] {
        let (code, _, log) = w.built(ZE_MODULE_FORMAT_NATIVE, &binary[..end], null());
        assert_ne!(code, ZE_RESULT_SUCCESS, "{end} of {size} bytes");
        assert!(!log.is_empty());
    }
}
#[test]
fn a_module_that_is_none_has_a_log_that_says_why() {
    let w = World::new();
    let (code, _, log) = w.built(ZE_MODULE_FORMAT_IL_SPIRV, &adds()[..adds().len() - 8], null());
    assert_eq!(code, ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    assert!(log.contains("ends inside a function"), "{log}");
}
#[test]
fn a_global_is_read_and_written_where_it_says_it_is() {
    let w = World::new();
    let module = w.module(&adds());
    let (mut size, mut at) = (0, null_mut());
    ok!(w.ze, module.pfnGetGlobalPointer(module, c"g".as_ptr(), &mut size, &mut at));
    assert_eq!(size, 4);
    assert_eq!(unsafe { at.cast::<u32>().read() }, 2);
    unsafe { at.cast::<u32>().write(1000) };
    assert_eq!(w.run(module, 0), [1040; 8]);
    let code = ze!(w.ze, module.pfnGetGlobalPointer(module, c"h".as_ptr(), &mut size, &mut at));
    assert_eq!(code, ZE_RESULT_ERROR_INVALID_GLOBAL_NAME);
}
#[test]
fn names_functions_and_properties_are_those_of_the_code() {
    let w = World::new();
    let module = w.module(&adds());
    let (mut count, mut name) = (0, null());
    ok!(w.ze, module.pfnGetKernelNames(module, &mut count, null_mut()));
    ok!(w.ze, module.pfnGetKernelNames(module, &mut count, &mut name));
    assert_eq!((count, unsafe { CStr::from_ptr(name) }), (1, c"k"));
    let mut at = null_mut();
    ok!(w.ze, module.pfnGetFunctionPointer(module, c"f".as_ptr(), &mut at));
    assert!(!at.is_null());
    let code = ze!(w.ze, module.pfnGetFunctionPointer(module, c"g".as_ptr(), &mut at));
    assert_eq!(code, ZE_RESULT_ERROR_INVALID_FUNCTION_NAME);
    let mut p = ze_kernel_properties_t::default();
    ok!(w.ze, kernel.pfnGetProperties(w.kernel(module, c"k"), &mut p));
    let required = [p.requiredGroupSizeX, p.requiredGroupSizeY, p.requiredGroupSizeZ];
    assert_eq!((p.numKernelArgs, required), (2, [4, 1, 1]));
}
#[test]
fn what_a_kernel_does_not_take_is_refused() {
    let w = World::new();
    let kernel = w.kernel(w.module(&adds()), c"k");
    let number = 0_u64;
    let at = from_ref(&number).cast();
    let code = ze!(w.ze, kernel.pfnSetArgumentValue(kernel, 2, 8, at));
    assert_eq!(code, ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
    let code = ze!(w.ze, kernel.pfnSetArgumentValue(kernel, 1, 8, at));
    assert_eq!(code, ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    for [x, y, z] in [[8, 1, 1], [0, 1, 1], [4, 1, 2]] {
        let code = ze!(w.ze, kernel.pfnSetGroupSize(kernel, x, y, z));
        assert_eq!(code, ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION);
    }
    let (mut x, mut y, mut z) = (0, 0, 0);
    ok!(w.ze, kernel.pfnSuggestGroupSize(kernel, 64, 64, 1, &mut x, &mut y, &mut z));
    assert_eq!([x, y, z], [4, 1, 1], "the size that the kernel requires");
}
