//! Modules: PTX, or an image that the linker made of it; their kernels and variables.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    attributes::{REGISTERS, SHARED, SHARED_OPT_IN, THREADS},
    code::{
        Answer, Code, INVALID_HANDLE, INVALID_IMAGE, INVALID_PTX, INVALID_VALUE, NO_BINARY,
        NOT_FOUND, UNSUPPORTED_PTX,
    },
    context::{self, Context},
    link, memory,
    ptx::{self, Entry, Text},
    ranges::{self, What, Who},
    raw::{self, get, list, put, put_bytes, put_maybe, text},
    state::handle,
};
use std::{
    collections::HashMap,
    ffi::{c_char, c_void},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicI32, Ordering},
    },
};
use ur_lock::locked;

/// A loaded module.
pub struct Module {
    pub context: u64,
    pub text: Text,
    /// Its variables: their addresses and sizes.
    pub variables: HashMap<String, (u64, u64)>,
}
/// A kernel of a module.
pub struct Function {
    pub module: Arc<Module>,
    owner: u64,
    place: usize,
    /// Dynamic shared memory that a launch may use; and whether clusters may exceed the portable size.
    pub dynamic: AtomicI32,
    pub big_clusters: AtomicI32,
}
impl Function {
    pub fn entry(&self) -> &Entry {
        &self.module.text.entries[self.place]
    }
    pub fn static_shared(&self) -> u64 {
        self.module.text.shared_bytes.next_multiple_of(16) + self.entry().shared_bytes
    }
    pub fn most_items(&self) -> i32 {
        let most = self.entry().most_items;
        if most == 0 { THREADS } else { THREADS.min(most as i32) }
    }
    pub fn registers(&self) -> i32 {
        (self.entry().registers as i32).clamp(8, 255).min(REGISTERS / THREADS)
    }
}
#[derive(Default)]
struct Modules {
    modules: HashMap<u64, Arc<Module>>,
    functions: HashMap<u64, Arc<Function>>,
}
static MODULES: LazyLock<Mutex<Modules>> = LazyLock::new(Mutex::default);
fn modules() -> MutexGuard<'static, Modules> {
    locked(&MODULES)
}
/// Returns a kernel that exists, whatever context is current.
pub fn function(id: u64) -> Answer<Arc<Function>> {
    modules().functions.get(&id).cloned().ok_or(INVALID_HANDLE)
}
fn of(id: u64) -> Answer<Arc<Module>> {
    modules().modules.get(&id).cloned().ok_or(INVALID_HANDLE)
}
/// Removes the modules of a context that was destroyed. Their memory is released with the context's other
/// memory.
pub fn end_of(context: u64) {
    let mut modules = modules();
    modules.modules.retain(|_, m| m.context != context);
    modules.functions.retain(|_, f| f.module.context != context);
}

/// The options of a compilation: their numbers and the addresses of their values.
pub struct Options(Vec<(i32, *mut *mut c_void)>);
impl Options {
    pub fn of(count: u32, options: *mut i32, values: *mut *mut c_void) -> Answer<Self> {
        let numbers = list(options, count as usize)?;
        if numbers.iter().any(|n| !(0..=30).contains(n)) || (count != 0 && values.is_null()) {
            return Err(INVALID_VALUE);
        }
        Ok(Self(
            numbers.into_iter().enumerate().map(|(i, n)| (n, values.wrapping_add(i))).collect(),
        ))
    }
    fn slot(&self, option: i32) -> Option<*mut *mut c_void> {
        self.0.iter().find(|(n, _)| *n == option).map(|(_, slot)| *slot)
    }
    /// Writes a log: options 3 and 4 are the information log and its size, 5 and 6 the error log. The size is
    /// replaced by the length that was written.
    pub fn log(&self, buffer: i32, words: &str) -> Answer {
        let (Some(at), Some(size)) = (self.slot(buffer), self.slot(buffer + 1)) else {
            return Ok(());
        };
        let (to, room) = (get(at)?.cast::<u8>(), get(size)?.expose_provenance() & 0xffff_ffff);
        let words = &words.as_bytes()[..words.len().min(room.saturating_sub(1))];
        put_bytes(to, room, words);
        if room != 0 && !to.is_null() {
            put(to.wrapping_add(words.len()), 0)?;
        }
        put(size, std::ptr::without_provenance_mut(words.len()))
    }
}
/// Parses PTX; an error is written to the error log.
pub fn compile(source: &str, options: &Options) -> Answer<Text> {
    let failed = |code: Code, words: &str| options.log(5, words).and(Err(code));
    let read = match ptx::read(source) {
        Ok(read) => read,
        Err(why) => return failed(INVALID_PTX, &why),
    };
    if read.version > 83 {
        return failed(UNSUPPORTED_PTX, "soft-cuda: fatal: PTX newer than version 8.3");
    }
    if read.target > 90 {
        return failed(NO_BINARY, "soft-cuda: fatal: made for a newer device than 9.0");
    }
    options.log(3, &format!("soft-cuda: info: {} kernels", read.entries.len()))?;
    options.log(5, "")?;
    Ok(read)
}
/// Returns the PTX of an image, which is PTX as text or an image of the linker.
pub fn source(image: *const c_void) -> Answer<String> {
    let head: [u8; 4] = get(image.cast())?;
    if head == *b"\x7fELF" {
        return link::source(image);
    }
    // Refuse fat binaries and everything that is no text.
    let is_text = head.iter().all(|b| *b == 0 || b.is_ascii_graphic() || b.is_ascii_whitespace());
    if !is_text || u32::from_le_bytes(head) == 0xba55_ed50 {
        return Err(INVALID_IMAGE);
    }
    text(image.cast())
}
fn load(context: &Context, text: Text) -> Answer<u64> {
    let defined: HashMap<&str, u64> = text
        .variables
        .iter()
        .filter(|v| !v.is_extern)
        .map(|v| (v.name.as_str(), v.bytes))
        .collect();
    if !text.is_whole() || text.variables.iter().any(|v| !defined.contains_key(v.name.as_str())) {
        return Err(INVALID_IMAGE); // a symbol is undefined
    }
    let mut variables = HashMap::new();
    for variable in text.variables.iter().filter(|v| !v.is_extern) {
        let at = memory::alloc(context, variable.bytes, What::Global)?;
        let table = ranges::table();
        let zeros = vec![0_u8; variable.bytes as usize];
        let here = table.reach(at, variable.bytes, context.device, Who::Copy, true)?;
        raw::copy(here, zeros.as_ptr(), zeros.len());
        raw::copy(here, variable.value.as_ptr(), variable.value.len().min(zeros.len()));
        variables.insert(variable.name.clone(), (at, variable.bytes));
    }
    let id = handle(0x03);
    modules().modules.insert(id, Arc::new(Module { context: context.id, text, variables }));
    Ok(id)
}

entries! {
    fn cuModuleLoadDataEx(to: *mut u64, image: *const c_void, count: u32, options: *mut i32, values: *mut *mut c_void) {
        let context = context::current()?;
        if to.is_null() || image.is_null() {
            return Err(INVALID_VALUE);
        }
        let options = Options::of(count, options, values)?;
        let text = compile(&source(image)?, &options)?;
        put(to, load(&context, text)?)
    }
    fn cuModuleUnload(module: u64) {
        of(module)?;
        let mut modules = modules();
        let gone = modules.modules.remove(&module).ok_or(INVALID_HANDLE)?;
        modules.functions.retain(|_, f| f.owner != module);
        drop(modules);
        for (at, _) in gone.variables.values() {
            let removed = ranges::change().remove(*at);
            removed.iter().for_each(|r| memory::gone(r));
        }
        Ok(())
    }
    fn cuModuleGetFunction(to: *mut u64, module: u64, name: *const c_char) {
        let (owner, module, name) = (module, of(module)?, text(name)?);
        let place = module.text.entries.iter().position(|e| e.name == name).ok_or(NOT_FOUND)?;
        let mut modules = modules();
        let known = modules.functions.iter().find(|(_, f)| f.owner == owner && f.place == place);
        if let Some((id, _)) = known {
            return put(to, *id);
        }
        let id = handle(0x0f);
        put(to, id)?;
        let (dynamic, big_clusters) = (AtomicI32::new(SHARED), AtomicI32::new(0));
        let function = Function { module, owner, place, dynamic, big_clusters };
        function.dynamic.fetch_sub(function.static_shared() as i32, Ordering::Relaxed);
        modules.functions.insert(id, Arc::new(function));
        Ok(())
    }
    fn cuModuleGetGlobal_v2(to: *mut u64, bytes: *mut usize, module: u64, name: *const c_char) {
        let (at, long) = *of(module)?.variables.get(&text(name)?).ok_or(NOT_FOUND)?;
        put_maybe(to, at);
        put_maybe(bytes, long as usize);
        Ok(())
    }
    fn cuFuncGetAttribute(to: *mut i32, attribute: i32, id: u64) {
        let function = function(id)?;
        put(to, match attribute {
            0 => function.most_items(),
            1 => function.static_shared() as i32,
            2 | 7 | 10..=13 | 15 => 0,
            3 => function.entry().local_bytes as i32,
            4 => function.registers(),
            5 => function.module.text.version as i32,
            6 => 90,
            8 => function.dynamic.load(Ordering::Acquire),
            9 => -1,
            14 => function.big_clusters.load(Ordering::Acquire),
            _ => return Err(INVALID_VALUE),
        })
    }
    fn cuFuncSetAttribute(id: u64, attribute: i32, value: i32) {
        let function = function(id)?;
        match attribute {
            8 if (0..=SHARED_OPT_IN - function.static_shared() as i32).contains(&value) => {
                function.dynamic.store(value, Ordering::Release);
            }
            9 if (-1..=100).contains(&value) => {}
            14 if value >= 0 => function.big_clusters.store(i32::from(value != 0), Ordering::Release),
            15 if (0..=2).contains(&value) => {}
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }
    fn cuFuncSetCacheConfig(id: u64, config: i32) {
        function(id)?;
        if (0..=3).contains(&config) { Ok(()) } else { Err(INVALID_VALUE) }
    }
    fn cuFuncGetParamInfo(id: u64, index: usize, offset: *mut usize, bytes: *mut usize) {
        let function = function(id)?;
        let parameter = function.entry().parameters.get(index).ok_or(INVALID_VALUE)?;
        put(offset, parameter.offset)?;
        put_maybe(bytes, parameter.bytes);
        Ok(())
    }
}
