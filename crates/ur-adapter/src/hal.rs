//! Where drivers' values meet UR's: failures get their codes, addresses and boxes their forms.
use crate::{
    error::{Error, ErrorCode},
    memory::UsmPtr,
};
use ur_hal::{Address, ErrorKind};

/// The code that callers see for a failure of a driver.
fn code(kind: ErrorKind) -> ErrorCode {
    use ErrorKind as K;
    match kind {
        K::InvalidValue => ErrorCode::InvalidValue,
        K::InvalidSize => ErrorCode::InvalidSize,
        K::InvalidOperation => ErrorCode::InvalidOperation,
        K::InvalidDevice => ErrorCode::InvalidDevice,
        K::InvalidArguments => ErrorCode::InvalidKernelArgs,
        K::InvalidGroupSize => ErrorCode::InvalidWorkGroupSize,
        K::InvalidBinary => ErrorCode::InvalidBinary,
        K::BuildFailed => ErrorCode::ProgramBuildFailure,
        K::LinkFailed => ErrorCode::ProgramLinkFailure,
        K::NotFound => ErrorCode::InvalidKernelName,
        K::Unsupported => ErrorCode::UnsupportedFeature,
        K::UnsupportedFormat => ErrorCode::UnsupportedImageFormat,
        K::OutOfHostMemory => ErrorCode::OutOfHostMemory,
        K::OutOfDeviceMemory => ErrorCode::OutOfDeviceMemory,
        K::OutOfResources => ErrorCode::OutOfResources,
        K::DependencyFailed => ErrorCode::InEventListExecStatus,
        K::DeviceLost => ErrorCode::DeviceLost,
        K::Uninitialized => ErrorCode::Uninitialized,
        K::DriverSpecific => ErrorCode::AdapterSpecific,
        _ => ErrorCode::Unknown,
    }
}
impl From<ur_hal::Error> for Error {
    fn from(error: ur_hal::Error) -> Self {
        let (code, status, reason) = (code(error.kind()), error.status(), error.reason());
        let plain = error.into_message().map_or(code.into(), |why| Self::new(code, why));
        let with_status = match status {
            Some(status) => plain.native(status),
            None => plain,
        };
        match reason {
            Some(reason) => with_status.because(reason),
            None => with_status,
        }
    }
}
impl From<UsmPtr> for Address {
    #[inline]
    fn from(at: UsmPtr) -> Self {
        Self::from(at.non_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_a_driver_keeps_what_it_says() {
        let error = ur_hal::Error::new(ErrorKind::OutOfDeviceMemory, "no memory is left");
        let error = Error::from(error.with_status(2));
        assert_eq!((error.code(), error.native_status()), (ErrorCode::OutOfDeviceMemory, Some(2)));
        assert!(error.to_string().starts_with("no memory is left ("), "{error}");
        let error = ur_hal::Error::from(ErrorKind::DependencyFailed);
        let error = Error::from(error.because(ur_ipc::ErrorKind::ExporterGone));
        assert_eq!(error.code(), ErrorCode::InEventListExecStatus);
        assert!(error.to_string().contains("reason exporter_gone"), "{error}");
    }
}
