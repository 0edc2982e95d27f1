//! What callers give that is no array: times and text.
use crate::failure::{Failure, Result};
use pyo3::{exceptions::PyTypeError, prelude::*, types::PyString};
use std::time::Duration;

/// That something should have been text.
pub fn no_text(rule: &str, object: &Bound<'_, PyAny>) -> PyErr {
    if object.is_instance_of::<PyString>() {
        let sentence = format!(
            "{rule} of whole characters, and this one has half of a surrogate pair: decode it anew"
        );
        return Failure::misuse(sentence).into();
    }
    match object.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("{rule}, and not {name}")),
        Err(error) => error,
    }
}
/// How long a caller waits: without a number, or with an infinite one, for ever.
pub fn patience(timeout: Option<f64>) -> Result<Duration> {
    timeout.filter(|&limit| limit != f64::INFINITY).map_or(Ok(Duration::MAX), seconds)
}
/// The same in seconds.
#[pyfunction]
pub fn limit(timeout: Option<f64>) -> Result<f64> {
    let limit = patience(timeout)?;
    Ok(if limit == Duration::MAX { f64::INFINITY } else { limit.as_secs_f64() })
}
/// A time in seconds.
pub fn seconds(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::misuse(format!(
            "a time of {seconds:?} seconds cannot be: give a number from 0 to 1e19, or None where there is no limit"
        ))
    })
}
