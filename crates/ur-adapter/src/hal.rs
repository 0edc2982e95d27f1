//! Conversions between drivers' values and UR's: errors, addresses.
use crate::{
    error::{Error, ErrorCode},
    memory::UsmPtr,
};
use ur_hal::{Address, ErrorKind};

/// The code that callers get for an error of a driver.
fn code(kind: ErrorKind) -> ErrorCode {
    use ErrorKind as K;
    match kind {
        K::InvalidValue => ErrorCode::InvalidValue,
        K::InvalidSize => ErrorCode::InvalidSize,
        K::InvalidOperation => ErrorCode::InvalidOperation,
        K::NotPermitted => ErrorCode::InvalidArgument,
        K::InvalidDevice => ErrorCode::InvalidDevice,
        K::PartitionFailed => ErrorCode::DevicePartitionFailed,
        K::InvalidPartitionCount => ErrorCode::InvalidDevicePartitionCount,
        K::InvalidArguments => ErrorCode::InvalidKernelArgs,
        K::InvalidGroupSize => ErrorCode::InvalidWorkGroupSize,
        K::InvalidContext => ErrorCode::InvalidContext,
        K::UnsupportedStream => ErrorCode::InvalidQueueProperties,
        K::InvalidMemory => ErrorCode::InvalidMemObject,
        K::Misaligned => ErrorCode::MisalignedSubBufferOffset,
        K::InvalidSampler => ErrorCode::InvalidSampler,
        K::InvalidEvent => ErrorCode::InvalidEvent,
        K::InvalidFunction => ErrorCode::InvalidKernel,
        K::InvalidArgumentIndex => ErrorCode::InvalidKernelArgumentIndex,
        K::InvalidArgumentSize => ErrorCode::InvalidKernelArgumentSize,
        K::InvalidGlobalSize => ErrorCode::InvalidWorkDimension,
        K::InvalidBinary => ErrorCode::InvalidBinary,
        K::InvalidModule => ErrorCode::InvalidProgram,
        K::NotBuilt => ErrorCode::InvalidProgramExecutable,
        K::BuildFailed => ErrorCode::ProgramBuildFailure,
        K::LinkFailed => ErrorCode::ProgramLinkFailure,
        K::NoCompiler => ErrorCode::CompilerNotAvailable,
        K::NotFound => ErrorCode::InvalidKernelName,
        K::NoAddress => ErrorCode::FunctionAddressNotAvailable,
        K::UnknownOption => ErrorCode::UnsupportedEnumeration,
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
/// The kind of an error, for driver methods built on functions that return UR codes.
fn kind(code: ErrorCode) -> ErrorKind {
    let mut all = ErrorKind::ALL.iter().copied();
    all.find(|one| self::code(*one) == code).unwrap_or(ErrorKind::Unknown)
}
impl From<Error> for ur_hal::Error {
    fn from(error: Error) -> Self {
        let (kind, status, reason) = (kind(error.code()), error.native_status(), error.reason());
        let plain = error.into_message().map_or(kind.into(), |why| Self::new(kind, why));
        let with_status = match status {
            Some(status) => plain.with_status(status),
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
impl From<Address> for UsmPtr {
    #[inline]
    fn from(at: Address) -> Self {
        Self::from_addr(at.get()).expect("an address is not 0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_code_of_its_own() {
        assert!(ErrorKind::ALL.iter().all(|one| kind(code(*one)) == *one));
    }
    #[test]
    fn a_failure_of_a_driver_keeps_what_it_says() {
        let error = ur_hal::Error::new(ErrorKind::OutOfDeviceMemory, "no memory is left");
        let error = Error::from(error.with_status(2));
        assert_eq!((error.code(), error.native_status()), (ErrorCode::OutOfDeviceMemory, Some(2)));
        assert!(error.to_string().starts_with("no memory is left ("), "{error}");
        let again = Error::from(ur_hal::Error::from(error));
        assert_eq!((again.code(), again.native_status()), (ErrorCode::OutOfDeviceMemory, Some(2)));
        assert!(again.to_string().starts_with("no memory is left ("), "{again}");
        let error = ur_hal::Error::from(ErrorKind::DependencyFailed);
        let error = Error::from(error.because(ur_ipc::ErrorKind::ExporterGone));
        assert_eq!(error.code(), ErrorCode::InEventListExecStatus);
        assert!(error.to_string().contains("reason exporter_gone"), "{error}");
    }
}
