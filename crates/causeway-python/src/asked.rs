//! What callers give that is no array: times and text.
use crate::failure::{Failure, Result};
use pyo3::{exceptions::PyTypeError, prelude::*};
use std::time::Duration;

/// That something should have been text.
pub fn no_text(rule: &str, object: &Bound<'_, PyAny>) -> PyErr {
    match object.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("{rule}, and not {name}")),
        Err(error) => error,
    }
}
/// A deadline in seconds.
pub fn seconds(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::misuse(format!(
            "a time of {seconds} seconds cannot be: every wait has a deadline, and what expires does so later"
        ))
    })
}
