//! Where our sentences go: to the callback of `urAdapterSetLoggerCallback`, which is how they reach
//! SYCL's users, and to what the environment variable `UR_LOG_<ADAPTER>` names (`UR_LOG_NATIVE_CPU`
//! for the CPU's adapter). The two have levels of their own, and each hears every sentence once.
//!
//! A process may have several adapters. Each has a log of its own, named by its `Backend`: whoever
//! says something says on whose behalf, and entries do so by the objects that they are for. What is
//! said of sharing in general, by threads that serve all adapters, goes to every log that is open.
//!
//! The variable has UR's syntax, options separated by `;`, in any order, each at most once:
//!
//! | Option | Values | Without it |
//! | --- | --- | --- |
//! | `level:` | `debug`, `info`, `warning`, `error`, `quiet` | `quiet`: nothing is written |
//! | `flush:` | the same | `error` |
//! | `output:` | `stderr`, `stdout`, `file,PATH` | `stderr` |
//!
//! What goes to the standard output goes through C's `stdout`, in order with what the program prints.
//! A file is appended to, and made if it is not there. Every line is written when it is said, so
//! none is lost in a crash; `flush` says from which level on the file is synced to the disk as well.
//! A value that is not of this form is ignored as a whole, after one warning.
//!
//! Levels: an entry that refuses says why as a `WARN` (the level that the SYCL runtime prints), one
//! that only tells what is not to be had here (`UNSUPPORTED_ENUMERATION`, `UNSUPPORTED_FEATURE`,
//! `INVALID_BINARY`: what programs ask as a matter of routine) as an `INFO`, and a fault of our own
//! (`UNKNOWN`) is an `ERROR`; a failure may say its own level: see `Error::at_level`. What is wrong
//! with the environment is a `WARN`.
#![expect(unsafe_code, reason = "calls back into C, and writes to its standard output")]
use crate::object::Backend;
use std::{
    ffi::{CString, OsStr, c_char, c_void},
    fmt::Display,
    fs::File,
    io::Write,
    sync::{Mutex, OnceLock, RwLock},
};
use ur_lock::{locked, read_locked, write_locked};
use ur_sys::ur_logger_level_t;

mod options;
mod spared;
use options::{Options, Output};
pub use spared::spared;

/// What C gives us to be told sentences by.
pub type Callback = unsafe extern "C" fn(ur_logger_level_t, *const c_char, *mut c_void);

#[derive(Clone, Copy)]
struct Logger {
    callback: Callback,
    user_data: *mut c_void,
    level: ur_logger_level_t,
}
// SAFETY: `set`'s caller promises that any thread may call.
unsafe impl Send for Logger {}
// SAFETY: as above.
unsafe impl Sync for Logger {}

/// What the environment asked for: of the adapter, or of another part that has a variable of its own.
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

/// Who listens to one adapter.
struct Log {
    sink: OnceLock<Sink>,
    logger: RwLock<Option<Logger>>,
    /// Warnings that came before there was a callback: they are about the process, not about a call.
    early: Mutex<Vec<String>>,
}
/// By `Backend::index`.
static LOGS: [Log; Backend::ALL.len()] = [const { Log::new() }; Backend::ALL.len()];
fn of(backend: Backend) -> &'static Log {
    &LOGS[backend.index()]
}

/// Reads `UR_LOG_<name>`, which is how sentences of `backend`'s adapter are asked for and headed, when
/// first called for it, and does nothing later.
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
        // Whoever set the variable wants to see something: this is written even where that
        // is all that is.
        sink.write(ur_logger_level_t::WARN, &complaint);
        log.tell_callback(ur_logger_level_t::WARN, &complaint);
        log.early(complaint);
    }
}

/// A warning about the environment of the process: said now, and again to a callback that is set
/// only later, as no program can set one before it has the adapter.
pub fn warn_of_environment(backend: Backend, sentence: String) {
    say(backend, ur_logger_level_t::WARN, &sentence);
    of(backend).early(sentence);
}

/// From now on sentences of `backend`'s adapter of `level` and above go to `callback`.
///
/// # Safety
/// Any thread may call `callback` with `user_data`, for good.
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

/// Changes what the callback of `backend`'s adapter hears of, if there is one.
pub fn set_level(backend: Backend, level: ur_logger_level_t) {
    if let Some(logger) = &mut *write_locked(&of(backend).logger) {
        logger.level = level;
    }
}

/// Hands `sentence` on to whoever listens to `backend`'s adapter at this level.
pub fn say(backend: Backend, level: ur_logger_level_t, sentence: &dyn Display) {
    of(backend).say(level, sentence);
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
        // Copied out: no lock is held while the callback runs, which may well set another.
        let logger = *read_locked(&self.logger);
        let Some(logger) = logger.filter(|l| l.level <= level) else {
            return;
        };
        let line = CString::new(sentence.to_string().replace('\0', " ")).unwrap_or_default();
        // SAFETY: promised to `set`; the line outlives the call.
        unsafe { (logger.callback)(level, line.as_ptr(), logger.user_data) };
    }
}

unsafe extern "C" {
    /// C's standard output, through which the host program's `printf` writes.
    static stdout: *mut libc::FILE;
}
/// Writes behind all that the program has printed so far, from Rust or from C: its buffers are emptied first, so that
/// the lines of a log stand where they were said.
fn write_to_stdout(bytes: &[u8]) -> std::io::Result<()> {
    std::io::stdout().flush()?;
    // SAFETY: the C library sets it before any code of ours runs; only the pointer is read.
    let to = unsafe { stdout };
    // SAFETY: as many bytes are read as there are; the stream is locked by the C library for the call, so that the
    // lines stay in one piece.
    let written = unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), to) };
    // SAFETY: `to` is the C library's own open stream, which it locks for the call.
    let flushed = unsafe { libc::fflush(to) };
    match written == bytes.len() && flushed == 0 {
        true => Ok(()),
        false => Err(std::io::Error::last_os_error()),
    }
}

impl Sink {
    /// What `UR_LOG_<part>` asks for, and what is wrong with it if it is not used. Without the
    /// variable, and with a wrong one, sentences of `otherwise` and above go to the standard error.
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
    /// Writes the sentence if it is serious enough.
    pub fn hear(&self, level: ur_logger_level_t, sentence: &dyn Display) {
        if self.level <= level {
            self.write(level, sentence);
        }
    }
    /// Whether a sentence so serious is written.
    pub fn hears(&self, level: ur_logger_level_t) -> bool {
        self.level <= level
    }
    /// Writes the lines as they are, in one piece, whatever the level.
    pub fn lines(&self, lines: &str) {
        // A failure to write a log has nowhere left to be told.
        let _ = spared(|| match &self.to {
            To::Stderr => std::io::stderr().lock().write_all(lines.as_bytes()),
            To::Stdout => write_to_stdout(lines.as_bytes()),
            To::File(file) => (&*file).write_all(lines.as_bytes()),
        });
    }
    /// What `value` asks for; what is wrong with it, if it is not used.
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
    /// One line, in one piece: lines of several threads do not mix.
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
