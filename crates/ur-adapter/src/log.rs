//! The log of the adapters. Messages go to the callback of `urAdapterSetLoggerCallback`, through which SYCL's users see
//! them, and to the output that the environment variable `UR_LOG_<ADAPTER>` names (`UR_LOG_NATIVE_CPU` for the CPU's
//! adapter). The two have levels of their own, and each gets every message once.
//!
//! A process may have several adapters. Each has a log of its own, identified by its `Backend`; entries log to that of
//! the objects they are called for. Messages about sharing in general, from threads that serve all adapters, go to
//! every open log.
//!
//! The variable has UR's syntax: options separated by `;`, in any order, each at most once.
//!
//! | Option | Values | Without it |
//! | --- | --- | --- |
//! | `level:` | `debug`, `info`, `warning`, `error`, `quiet` | `quiet`: nothing is written |
//! | `flush:` | the same | `error` |
//! | `output:` | `stderr`, `stdout`, `file,PATH` | `stderr` |
//!
//! Standard output means C's `stdout`, in order with what the program prints. A file is appended to, and created if
//! necessary. Every line is written immediately, so none is lost in a crash; `flush` sets the level from which the file
//! is also synced to the disk. A value of another form is ignored as a whole, after one warning.
//!
//! Levels: the reason of a failed entry is a `WARN` (which the SYCL runtime prints). A missing feature
//! (`UNSUPPORTED_ENUMERATION`, `UNSUPPORTED_FEATURE`, `INVALID_BINARY`: what programs query as a matter of routine) is
//! an `INFO`, and a fault of this library (`UNKNOWN`) is an `ERROR`. Problems of the environment are a `WARN`.
#![expect(unsafe_code, reason = "calls back into C, and writes to its standard output")]
use crate::object::Backend;
use std::{
    ffi::{CString, OsStr, c_char, c_void},
    fmt::Display,
    fs::File,
    io::Write,
    sync::{Mutex, OnceLock, RwLock},
};
use ur_hal::Severity;
use ur_lock::{locked, read_locked, write_locked};
use ur_sys::ur_logger_level_t;

mod options;
mod spared;
use options::{Options, Output};
pub use spared::spared;

/// The type of the callback that the application registers.
pub type Callback = unsafe extern "C" fn(ur_logger_level_t, *const c_char, *mut c_void);

#[derive(Clone, Copy)]
struct Logger {
    callback: Callback,
    user_data: *mut c_void,
    level: ur_logger_level_t,
}
// SAFETY: the caller of `set` promises that any thread may call the callback.
unsafe impl Send for Logger {}
// SAFETY: as above.
unsafe impl Sync for Logger {}

/// The output that an environment variable selects, for an adapter or for another part with a variable of its own.
#[derive(Debug)]
pub struct Sink {
    adapter: &'static str,
    level: ur_logger_level_t,
    flush: ur_logger_level_t,
    to: To,
}
#[derive(Debug)]
enum To {
    Stderr,
    Stdout,
    File(File),
}

/// The outputs of one adapter.
struct Log {
    sink: OnceLock<Sink>,
    logger: RwLock<Option<Logger>>,
    /// Warnings issued before a callback was set. They concern the process and not a call.
    early: Mutex<Vec<String>>,
}
/// Indexed by `Backend::index`.
static LOGS: [Log; Backend::ALL.len()] = [const { Log::new() }; Backend::ALL.len()];
fn of(backend: Backend) -> &'static Log {
    &LOGS[backend.index()]
}

/// Opens the log of `backend`'s adapter at the first call, and does nothing later. Reads `UR_LOG_<name>`; `name` also
/// heads the messages.
pub fn open(backend: Backend, name: &'static str) {
    ur_ipc::on_notice(|sentence| {
        LOGS.iter().for_each(|log| log.say(ur_logger_level_t::WARN, sentence));
    });
    let log = of(backend);
    let mut complaint = None;
    let sink = log.sink.get_or_init(|| {
        let variable = format!("UR_LOG_{name}");
        let (sink, wrong) = Sink::new(name, std::env::var_os(&variable).as_deref());
        complaint = wrong.map(|wrong| format!("{variable} is ignored: {wrong}"));
        sink
    });
    if let Some(complaint) = complaint {
        // The user who set the variable expects output, so this is written even if it is the only message.
        sink.write(ur_logger_level_t::WARN, &complaint);
        log.tell_callback(ur_logger_level_t::WARN, &complaint);
        log.early(complaint);
    }
}

/// Logs a warning about the environment of the process: now, and again to a callback that is set later, because no
/// program can set one before it has the adapter.
pub fn warn_of_environment(backend: Backend, sentence: String) {
    say(backend, ur_logger_level_t::WARN, &sentence);
    of(backend).early(sentence);
}

/// Sends messages of `backend`'s adapter of `level` and above to `callback` from now on.
///
/// # Safety
/// `callback` may be called with `user_data` from any thread, for ever.
pub unsafe fn set(
    backend: Backend,
    callback: Callback,
    user_data: *mut c_void,
    level: ur_logger_level_t,
) {
    let log = of(backend);
    let logger = Logger { callback, user_data, level };
    *write_locked(&log.logger) = Some(logger);
    let early = std::mem::take(&mut *locked(&log.early));
    early.iter().for_each(|sentence| log.tell_callback(ur_logger_level_t::WARN, sentence));
}

/// Changes the level from which the callback of `backend`'s adapter gets messages, if there is one.
pub fn set_level(backend: Backend, level: ur_logger_level_t) {
    if let Some(logger) = &mut *write_locked(&of(backend).logger) {
        logger.level = level;
    }
}

/// Logs `sentence` to the outputs of `backend`'s adapter that include this level.
pub fn say(backend: Backend, level: ur_logger_level_t, sentence: &dyn Display) {
    of(backend).say(level, sentence);
}

/// Logs what a driver tells.
pub fn notice(backend: Backend, severity: Severity, sentence: &dyn Display) {
    let level = match severity {
        Severity::Note => ur_logger_level_t::INFO,
        Severity::Warning => ur_logger_level_t::WARN,
        Severity::Error => ur_logger_level_t::ERROR,
        Severity::Environment => return warn_of_environment(backend, sentence.to_string()),
    };
    say(backend, level, sentence);
}

impl Log {
    const fn new() -> Self {
        Self { sink: OnceLock::new(), logger: RwLock::new(None), early: Mutex::new(Vec::new()) }
    }
    fn say(&self, level: ur_logger_level_t, sentence: &dyn Display) {
        if let Some(sink) = self.sink.get() {
            sink.hear(level, sentence);
        }
        self.tell_callback(level, sentence);
    }
    fn early(&self, sentence: String) {
        if read_locked(&self.logger).is_none() {
            locked(&self.early).push(sentence);
        }
    }
    fn tell_callback(&self, level: ur_logger_level_t, sentence: &dyn Display) {
        // Copied, so that no lock is held while the callback runs, which may set another one.
        let logger = *read_locked(&self.logger);
        let Some(logger) = logger.filter(|l| l.level <= level) else {
            return;
        };
        let line = CString::new(sentence.to_string().replace('\0', " ")).unwrap_or_default();
        // SAFETY: the caller of `set` promised this; the line outlives the call.
        unsafe { (logger.callback)(level, line.as_ptr(), logger.user_data) };
    }
}

unsafe extern "C" {
    /// C's standard output, through which the host program's `printf` writes.
    static stdout: *mut libc::FILE;
}
/// Writes after everything that the program has printed so far, from Rust or from C: Rust's buffer is flushed first, so
/// that log lines appear in order.
fn write_to_stdout(bytes: &[u8]) -> std::io::Result<()> {
    std::io::stdout().flush()?;
    // SAFETY: the C library initialises it before any other code runs; only the pointer is read.
    let to = unsafe { stdout };
    // SAFETY: reads exactly the given bytes. The C library locks the stream during the call, so lines stay in one
    // piece.
    let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), to) };
    // SAFETY: `to` is an open stream of the C library, which locks it during the call.
    let flushed = unsafe { libc::fflush(to) };
    match written == bytes.len() && flushed == 0 {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error()),
    }
}

impl Sink {
    /// The output that `UR_LOG_<part>` selects, and what is wrong with the variable if it is ignored. Without a valid
    /// variable, messages of `otherwise` and above go to the standard error.
    pub fn of_environment(
        part: &'static str,
        otherwise: ur_logger_level_t,
    ) -> (Self, Option<String>) {
        let name = format!("UR_LOG_{part}");
        let value = std::env::var_os(&name).filter(|value| !value.is_empty());
        let (mut sink, wrong) = Self::new(part, value.as_deref());
        if value.is_none() || wrong.is_some() {
            sink.level = otherwise;
        }
        (sink, wrong.map(|wrong| format!("{name} is ignored: {wrong}")))
    }
    /// Writes the message if its level is included.
    pub fn hear(&self, level: ur_logger_level_t, sentence: &dyn Display) {
        if self.level <= level {
            self.write(level, sentence);
        }
    }
    /// Whether messages of this level are written.
    pub fn hears(&self, level: ur_logger_level_t) -> bool {
        self.level <= level
    }
    /// Writes the lines unchanged and in one piece, whatever the level.
    pub fn lines(&self, lines: &str) {
        // A failure to write the log cannot be reported anywhere.
        let _ = spared(|| match &self.to {
            To::Stderr => std::io::stderr().lock().write_all(lines.as_bytes()),
            To::Stdout => write_to_stdout(lines.as_bytes()),
            To::File(file) => (&*file).write_all(lines.as_bytes()),
        });
    }
    /// The output that `value` selects, and what is wrong with it if it is ignored.
    fn new(adapter: &'static str, value: Option<&OsStr>) -> (Self, Option<String>) {
        let parsed = Options::parse(value.unwrap_or_default()).and_then(|options| {
            let to = match &options.output {
                Output::Stderr => To::Stderr,
                Output::Stdout => To::Stdout,
                Output::File(path) => {
                    let file = File::options().append(true).create(true).open(path);
                    let wrong = |e| format!("{} cannot be opened: {e}", path.display());
                    To::File(file.map_err(wrong)?)
                }
            };
            Ok(Self { adapter, level: options.level, flush: options.flush, to })
        });
        match parsed {
            Ok(sink) => (sink, None),
            Err(wrong) => {
                let Options { level, flush, .. } = Options::default();
                (Self { adapter, level, flush, to: To::Stderr }, Some(wrong))
            }
        }
    }
    /// Writes one line in one piece, so that lines of several threads do not mix.
    fn write(&self, level: ur_logger_level_t, sentence: &dyn Display) {
        let word = options::word(level).to_uppercase();
        self.lines(&format!("<{}>[{word}]: {sentence}\n", self.adapter));
        if let To::File(file) = &self.to
            && level >= self.flush
        {
            let _ = file.sync_data();
        }
    }
}
