//! What the loader says: to where `UR_LOG_LOADER` says, which has the syntax that `ur_adapter::log`
//! describes. Without the variable, warnings and errors go to the standard error: a file that calls
//! itself an adapter and is none must be heard of; that there is no such file is an `info`.
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
/// For who looks for a fault of the loader's.
pub fn debug(sentence: impl Display) {
    sink().hear(Level::DEBUG, &sentence);
}
/// What went as it should.
pub fn info(sentence: impl Display) {
    sink().hear(Level::INFO, &sentence);
}
/// What went otherwise than someone meant.
pub fn warn(sentence: impl Display) {
    sink().hear(Level::WARN, &sentence);
}
/// What did not work.
pub fn error(sentence: impl Display) {
    sink().hear(Level::ERROR, &sentence);
}
