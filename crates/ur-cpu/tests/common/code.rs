//! A C program with native code: shared objects that cc builds, tables of functions, and launches
//! as one calls them.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use super::ur::*;
use crate::call;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    fs,
    path::Path,
    process::{Command, Stdio},
    ptr::{null, null_mut},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use ur_exp_kernel_arg_type_t as T;
use ur_exp_kernel_arg_value_t as V;

/// The record that a kernel finds its place in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub global_id: [usize; 3],
    pub global_range: [usize; 3],
    pub group_size: [usize; 3],
    pub group_id: [usize; 3],
    pub local_id: [usize; 3],
    pub groups: [usize; 3],
    pub global_offset: [usize; 3],
    pub sub_groups: u32,
    pub sub_group_id: u32,
    pub sub_group_local_id: u32,
    pub sub_group_size: u32,
}
pub type Function = unsafe extern "C" fn(*const *mut c_void, *const State);
/// One entry of a table of functions; the last one is `END`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pair(pub *const c_char, pub Option<Function>);
unsafe impl Sync for Pair {}
pub const END: Pair = Pair(null(), None);
pub fn pair(name: &'static CStr, function: Function) -> Pair {
    Pair(name.as_ptr(), Some(function))
}

/// A shared object of this C; `None`, with a word, where there is no compiler.
pub fn compiled(source: &str) -> Option<Vec<u8>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("causeway-code-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    let at = std::env::temp_dir().join(name);
    let mut command = Command::new("cc");
    command.args(["-O2", "-shared", "-fPIC", "-x", "c", "-o"]).arg(&at).arg("-");
    let Ok(mut cc) = command.stdin(Stdio::piped()).spawn() else {
        println!("skipped: there is no C compiler called cc");
        return None;
    };
    let mut input = cc.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, source.as_bytes()).unwrap();
    drop(input);
    assert!(cc.wait().unwrap().success(), "cc refuses {source}");
    let bytes = fs::read(&at).unwrap();
    fs::remove_file(&at).unwrap();
    Some(bytes)
}
/// The kernels of `examples/c/kernel.c`, compiled.
pub fn example() -> Option<&'static [u8]> {
    static EXAMPLE: LazyLock<Option<Vec<u8>>> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/kernel.c");
        compiled(&fs::read_to_string(path).unwrap())
    });
    EXAMPLE.as_deref()
}

pub type Argument = ur_exp_kernel_arg_properties_t;
fn argument(r#type: T, index: u32, size: usize, value: V) -> Argument {
    let stype = ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES;
    ur_exp_kernel_arg_properties_t { stype, pNext: null_mut(), r#type, index, size, value }
}
pub fn value<A>(index: u32, value: &A) -> Argument {
    argument(T::VALUE, index, size_of::<A>(), V { value: (&raw const *value).cast() })
}
pub fn pointer(index: u32, to: *const c_void) -> Argument {
    argument(T::POINTER, index, 8, V { pointer: to })
}
pub fn buffer(index: u32, mem: ur_mem_handle_t) -> Argument {
    let tuple = ur_exp_kernel_arg_mem_obj_tuple_t { hMem: mem, flags: ur_mem_flags_t::READ_WRITE };
    argument(T::MEM_OBJ, index, 8, V { memObjTuple: tuple })
}
pub fn local(index: u32, bytes: usize) -> Argument {
    argument(T::LOCAL, index, bytes, V { pointer: null() })
}
pub fn sampler(index: u32, sampler: ur_sampler_handle_t) -> Argument {
    argument(T::SAMPLER, index, 8, V { sampler })
}

/// A program with a queue.
#[derive(Clone, Copy)]
pub struct Codes {
    pub ur: Ur,
    pub queue: ur_queue_handle_t,
}
// Handles are C's: any thread may use them.
unsafe impl Send for Codes {}
unsafe impl Sync for Codes {}
/// A kernel that any thread may launch.
#[derive(Clone, Copy)]
pub struct Anyones(pub ur_kernel_handle_t);
unsafe impl Send for Anyones {}
unsafe impl Sync for Anyones {}
impl Anyones {
    pub fn kernel(self) -> ur_kernel_handle_t {
        self.0
    }
}

/// The items of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    pub offset: Option<&'a [usize]>,
    pub global: &'a [usize],
    pub local: Option<&'a [usize]>,
}
pub fn items(global: &[usize]) -> Items<'_> {
    Items { offset: None, global, local: None }
}
fn first(of: Option<&[usize]>) -> *const usize {
    of.map_or(null(), <[usize]>::as_ptr)
}

impl Codes {
    pub fn new() -> Self {
        let ur = Ur::new();
        Self { ur, queue: ur.new_queue(ur_queue_flags_t::default()) }
    }
    /// A program of bytes, wherever they lie.
    pub fn raw(&self, at: *const u8, length: usize) -> Outcome<ur_program_handle_t> {
        let (mut device, mut length, mut at) = (self.ur.device, length, at);
        let mut program = ur_program_handle_t::NULL;
        self.ur.check(call!(program.create_with_binary(
            self.ur.context,
            1,
            &mut device,
            &mut length,
            &mut at,
            null(),
            &mut program
        )))?;
        Ok(program)
    }
    pub fn program(&self, bytes: &[u8]) -> Outcome<ur_program_handle_t> {
        self.raw(bytes.as_ptr(), bytes.len())
    }
    pub fn table(&self, pairs: &[Pair]) -> Outcome<ur_program_handle_t> {
        self.raw(pairs.as_ptr().cast(), size_of_val(pairs))
    }
    pub fn build(&self, program: ur_program_handle_t) -> Outcome<()> {
        self.ur.check(call!(program.build(self.ur.context, program, null())))
    }
    pub fn compile(&self, program: ur_program_handle_t) -> Outcome<()> {
        self.ur.check(call!(program.compile(self.ur.context, program, null())))
    }
    pub fn link(&self, programs: &[ur_program_handle_t]) -> Outcome<ur_program_handle_t> {
        let (count, mut linked) = (programs.len() as u32, ur_program_handle_t::NULL);
        let context = self.ur.context;
        let code = call!(program.link(context, count, programs.as_ptr(), null(), &mut linked));
        self.ur.check(code)?;
        Ok(linked)
    }
    pub fn kernel(&self, program: ur_program_handle_t, name: &str) -> Outcome<ur_kernel_handle_t> {
        let (name, mut kernel) = (CString::new(name).unwrap(), ur_kernel_handle_t::NULL);
        self.ur.check(call!(kernel.create(program, name.as_ptr(), &mut kernel)))?;
        Ok(kernel)
    }
    /// A kernel of a shared object; its program is released.
    pub fn kernel_of(&self, object: &[u8], name: &str) -> ur_kernel_handle_t {
        let program = self.program(object).expect("a program");
        self.build(program).expect("it builds");
        let kernel = self.kernel(program, name).expect("a kernel");
        self.release_program(program);
        kernel
    }
    pub fn release_program(&self, program: ur_program_handle_t) {
        assert_eq!(call!(program.release(program)), ur_result_t::SUCCESS);
    }
    pub fn release(&self, kernel: ur_kernel_handle_t) {
        assert_eq!(call!(kernel.release(kernel)), ur_result_t::SUCCESS);
    }
    /// Launches on a queue after some events; its own event.
    pub fn launch_on(
        &self,
        queue: ur_queue_handle_t,
        kernel: ur_kernel_handle_t,
        items: Items<'_>,
        arguments: &[Argument],
        after: &[ur_event_handle_t],
    ) -> Outcome<ur_event_handle_t> {
        let mut event = ur_event_handle_t::NULL;
        let code = call!(enqueue_exp.kernel_launch_with_args_exp(
            queue,
            kernel,
            items.global.len() as u32,
            first(items.offset),
            items.global.as_ptr(),
            first(items.local),
            arguments.len() as u32,
            if arguments.is_empty() { null() } else { arguments.as_ptr() },
            null(),
            after.len() as u32,
            if after.is_empty() { null() } else { after.as_ptr() },
            &mut event
        ));
        self.ur.check(code)?;
        Ok(event)
    }
    /// Launches and waits.
    pub fn run(
        &self,
        kernel: ur_kernel_handle_t,
        items: Items<'_>,
        arguments: &[Argument],
    ) -> Outcome<()> {
        let event = self.launch_on(self.queue, kernel, items, arguments, &[])?;
        self.wait(event);
        Ok(())
    }
    /// Waits for an event and releases it.
    pub fn wait(&self, event: ur_event_handle_t) {
        assert_eq!(call!(event.wait(1, &event)), ur_result_t::SUCCESS);
        assert_eq!(call!(event.release(event)), ur_result_t::SUCCESS);
    }
    pub fn program_info<A: Copy + Default>(
        &self,
        program: ur_program_handle_t,
        name: ur_program_info_t,
    ) -> Outcome<A> {
        self.ur.value(|size, to, ret| call!(program.get_info(program, name, size, to, ret)))
    }
    /// A text that a query answers with.
    pub fn text(&self, query: impl Fn(usize, *mut c_void, *mut usize) -> ur_result_t) -> String {
        let mut size = 0;
        self.ur.check(query(0, null_mut(), &mut size)).expect("a size");
        let mut bytes = vec![0_u8; size];
        self.ur.check(query(size, bytes.as_mut_ptr().cast(), null_mut())).expect("a text");
        assert_eq!(bytes.pop(), Some(0), "texts end with a zero");
        String::from_utf8(bytes).unwrap()
    }
    pub fn log(&self, program: ur_program_handle_t) -> String {
        let (device, name) = (self.ur.device, ur_program_build_info_t::LOG);
        self.text(|size, to, ret| {
            call!(program.get_build_info(program, device, name, size, to, ret))
        })
    }
}
