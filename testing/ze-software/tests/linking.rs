//! Modules that consist of several parts: linked at creation, linked later, and shared objects.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod assembler;
mod driver;
use assembler::{module, named, op};
use driver::{IN_ORDER, NONE, World};
use std::{
    ffi::CStr,
    process::Command,
    ptr::{from_ref, null_mut},
};
use ze_sys::*;

const VOID: u32 = 1;
const INT: u32 = 2;
const OUT: u32 = 3;
const TAKES: u32 = 4;
const CHANGES: u32 = 5;
const FUNCTION: u32 = 6;
const OUTSIDE: u32 = 7;
const VALUE: u32 = 8;
fn types() -> Vec<u32> {
    let all = [
        op(19, &[VOID]),
        op(21, &[INT, 32, 0]),
        op(32, &[OUT, 5, INT]),
        op(33, &[TAKES, VOID, OUT]),
        op(33, &[CHANGES, INT, INT]),
    ];
    all.concat()
}
/// A kernel `k(out)` that stores the result of `twice` for 21 and the variable `more`; both are in another
/// module.
fn caller() -> Vec<u8> {
    let [to, label, given, made, variable, more, sum] = [9, 10, 11, 12, 13, 14, 15];
    let parts = [
        named(15, &[6, FUNCTION], "k", &[]),
        named(71, &[OUTSIDE, 41], "twice", &[1]),
        named(71, &[variable, 41], "more", &[1]),
        types(),
        op(43, &[INT, given, 21]),
        op(59, &[OUT, variable, 5]),
        op(54, &[INT, OUTSIDE, 0, CHANGES]),
        op(55, &[INT, VALUE]),
        op(56, &[]),
        op(54, &[VOID, FUNCTION, 0, TAKES]),
        op(55, &[OUT, to]),
        op(248, &[label]),
        op(57, &[INT, made, OUTSIDE, given]),
        op(61, &[INT, more, variable]),
        op(128, &[INT, sum, made, more]),
        op(62, &[to, sum]),
        op(253, &[]),
        op(56, &[]),
    ];
    module(20, &parts)
}
/// The module with `twice` and `more`.
fn callee() -> Vec<u8> {
    let [label, sum, variable, number] = [10, 11, 12, 13];
    let parts = [
        named(71, &[OUTSIDE, 41], "twice", &[0]),
        named(71, &[variable, 41], "more", &[0]),
        types(),
        op(43, &[INT, number, 300]),
        op(59, &[OUT, variable, 5, number]),
        op(54, &[INT, OUTSIDE, 0, CHANGES]),
        op(55, &[INT, VALUE]),
        op(248, &[label]),
        op(128, &[INT, sum, VALUE, VALUE]),
        op(254, &[sum]),
        op(56, &[]),
    ];
    module(20, &parts)
}
impl World {
    fn create(&self, desc: &ze_module_desc_t) -> (ze_result_t, ze_module_handle_t) {
        let mut module = null_mut();
        let code = ze!(
            self.ze,
            module.pfnCreate(self.context, self.device, desc, &mut module, null_mut())
        );
        (code, module)
    }
    fn of(&self, format: ze_module_format_t, bytes: &[u8]) -> ze_module_handle_t {
        let stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
        let (at, size) = (bytes.as_ptr(), bytes.len());
        let desc = ze_module_desc_t {
            stype,
            format,
            inputSize: size,
            pInputModule: at,
            ..Default::default()
        };
        let (code, module) = self.create(&desc);
        assert_eq!(code, ZE_RESULT_SUCCESS);
        module
    }
    /// Creates one module from several SPIR-V modules.
    fn joined(&self, parts: &[Vec<u8>]) -> (ze_result_t, ze_module_handle_t) {
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut inputs: Vec<*const u8> = parts.iter().map(|p| p.as_ptr()).collect();
        let several = ze_module_program_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC,
            count: parts.len() as u32,
            inputSizes: sizes.as_ptr(),
            pInputModules: inputs.as_mut_ptr(),
            ..Default::default()
        };
        let stype = ZE_STRUCTURE_TYPE_MODULE_DESC;
        let next = from_ref(&several).cast();
        self.create(&ze_module_desc_t { stype, pNext: next, ..Default::default() })
    }
    fn kernel(&self, module: ze_module_handle_t) -> (ze_result_t, ze_kernel_handle_t) {
        let stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
        let desc = ze_kernel_desc_t { stype, pKernelName: c"k".as_ptr(), ..Default::default() };
        let mut kernel = null_mut();
        (ze!(self.ze, kernel.pfnCreate(module, &desc, &mut kernel)), kernel)
    }
    /// What `k` stores.
    fn stored(&self, module: ze_module_handle_t) -> u32 {
        let ((code, kernel), list) = (self.kernel(module), self.immediate(IN_ORDER));
        assert_eq!(code, ZE_RESULT_SUCCESS);
        let mut out = 0_u32;
        let at = &raw mut out;
        ok!(self.ze, kernel.pfnSetArgumentValue(kernel, 0, 8, from_ref(&at).cast()));
        ok!(self.ze, kernel.pfnSetGroupSize(kernel, 1, 1, 1));
        let one = ze_group_count_t { groupCountX: 1, groupCountY: 1, groupCountZ: 1 };
        ok!(self.ze, list.pfnAppendLaunchKernel(list, kernel, &one, NONE, 0, null_mut()));
        self.finish(list);
        out
    }
}

#[test]
fn modules_that_are_made_as_one_find_each_other() {
    let w = World::new();
    let (code, module) = w.joined(&[caller(), callee()]);
    assert_eq!(code, ZE_RESULT_SUCCESS);
    assert_eq!(w.stored(module), 342);
}
#[test]
fn modules_with_one_name_for_two_functions_are_not_made_one() {
    let (code, _) = World::new().joined(&[callee(), callee()]);
    assert_eq!(code, ZE_RESULT_ERROR_MODULE_LINK_FAILURE);
}
#[test]
fn a_module_has_no_kernels_until_what_it_calls_is_linked() {
    let w = World::new();
    let lacks = w.of(ZE_MODULE_FORMAT_IL_SPIRV, &caller());
    let mut says = ze_module_properties_t::default();
    ok!(w.ze, module.pfnGetProperties(lacks, &mut says));
    assert_eq!(says.flags, ZE_MODULE_PROPERTY_FLAG_IMPORTS);
    assert_eq!(w.kernel(lacks).0, ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED);
    let (mut alone, mut log) = ([lacks], null_mut());
    let code = ze!(w.ze, module.pfnDynamicLink(1, alone.as_mut_ptr(), &mut log));
    assert_eq!(code, ZE_RESULT_ERROR_MODULE_LINK_FAILURE);
    let mut text = [0_u8; 256];
    ok!(w.ze, log.pfnGetString(log, &mut text.len(), text.as_mut_ptr().cast()));
    let text = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap();
    assert!(text.contains("twice") && text.contains("more"), "{text}");
    let mut both = [lacks, w.of(ZE_MODULE_FORMAT_IL_SPIRV, &callee())];
    ok!(w.ze, module.pfnDynamicLink(2, both.as_mut_ptr(), null_mut()));
    ok!(w.ze, module.pfnGetProperties(lacks, &mut says));
    assert_eq!((says.flags, w.stored(lacks)), (0, 342));
}
#[test]
fn functions_of_a_shared_object_are_kernels() {
    let folder = std::env::temp_dir().join(format!("ze-software-native-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (text, file) = (folder.join("k.c"), folder.join("k.so"));
    let source = "
        #include <stddef.h>
        struct item { size_t global_id[3], local_id[3], group_id[3], global_size[3], local_size[3], offset[3]; };
        int g = 5;
        static void k(const void *const *arguments, const struct item *item) {
            unsigned *to = *(unsigned *const *)arguments[0];
            *to += 7 + item->global_id[0] + item->local_size[0] + g;
        }
        struct { const char *name; void *function; unsigned parameters; }
            ze_software_kernels[] = { { \"k\", (void *)k, 1 }, { 0 } };";
    std::fs::write(&text, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&text);
    assert!(cc.status().unwrap().success());
    let w = World::new();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let module = w.of(ZE_MODULE_FORMAT_NATIVE, &bytes);
    assert_eq!(w.stored(module), 13);
    let (mut size, mut at) = (0, null_mut());
    ok!(w.ze, module.pfnGetGlobalPointer(module, c"g".as_ptr(), &mut size, &mut at));
    assert_eq!((size, unsafe { at.cast::<i32>().read() }), (4, 5));
    ok!(w.ze, module.pfnGetNativeBinary(module, &mut size, null_mut()));
    assert_eq!(size, bytes.len());
}
