//! The loader's log. It goes where `UR_LOG_LOADER` says, whose syntax `ur_adapter::log` describes. Without
//! the variable, warnings and errors go to the standard error: a file that is named like an adapter but is
//! none gives a warning; an adapter that is not installed only an `info`.
use std::{fmt::Display, sync::OnceLock};
use ur_adapter::log::Sink;
use ur_sys::ur_logger_level_t as Level;

fn sink() -> &'static Sink {
    static SINK: OnceLock<Sink> = OnceLock::new();
    SINK.get_or_init(|| {
        let (sink, wrong) = Sink::of_environment("LOADER", Level::WARN);
        if let Some(wrong) = wrong {
            sink.hear(Level::WARN, &wrong);
        }
        sink
    })
}
/// Logs details for developers of the loader.
pub fn debug(sentence: impl Display) {
    sink().hear(Level::DEBUG, &sentence);
}
/// Logs normal operation.
pub fn info(sentence: impl Display) {
    sink().hear(Level::INFO, &sentence);
}
/// Logs something that probably differs from what the user wanted.
pub fn warn(sentence: impl Display) {
    sink().hear(Level::WARN, &sentence);
}
/// Logs a failure.
pub fn error(sentence: impl Display) {
    sink().hear(Level::ERROR, &sentence);
}
