//! The interface between the core and a driver: the trait [`Driver`], the [`Command`]s that its streams execute, and
//! the [`Capabilities`] that its devices may have. This crate contains no handle, entry point or enumerator of UR, and
//! no C types: `ur-core` implements UR over any driver, and a backend crate implements [`Driver`] without knowing UR.
//!
//! Sizes, lengths and pitches are in bytes, times in nanoseconds. An [`Address`] is only a number: the caller that
//! submits a command guarantees that the memory at its addresses stays valid until the command has run.
//!
//! The reasons for this division are in `docs/decisions/0012-one-core-thin-drivers.md`.
#![forbid(unsafe_code)]

mod address;
mod address_map;
mod advice;
mod allocates;
mod boxes;
mod buffers;
mod calls;
mod capabilities;
mod claims;
mod code;
mod command;
mod describes;
mod devices;
mod driver;
mod error;
mod exhausted;
mod facts;
mod graphs;
mod images;
mod memory;
mod modules;
mod moments;
mod notice;
mod pattern;
mod peers;
mod placement;
mod rows;
mod shares;
mod stream_states;
mod streams;
mod submission;
mod types;
mod virtual_memory;

pub use address::{Address, Range};
pub use address_map::AddressMap;
pub use advice::{Advice, Hint};
pub use allocates::{Allocates, ExportsMemory, ExternalForm, Pins};
pub use boxes::{BoxPlace, BoxSpan, share_bytes};
pub use buffers::{AdoptedBuffer, MakesBuffers};
pub use calls::{Outcome, Statuses, handles, listed, made, placed, text, told};
pub use capabilities::{Capabilities, Capability};
pub use claims::Claims;
pub use code::{
    Argument, CachePreference, CodeForm, Constant, FunctionFacts, Geometry, GroupChoice,
    KeptLaunch, LOCAL_ALIGNMENT, LONGEST_ARGUMENT, Launch, place_local,
};
pub use command::{
    BoxCopy, Command, Handover, HostCall, ImageCopy, ImageEnd, Location, NativeCall, Recorded,
    Signal,
};
pub use describes::{DescribesDevices, PartitionsDevices};
pub use devices::{NativeHandles, OpensDevices, PlatformFacts};
pub use driver::Driver;
pub use error::{Error, ErrorKind, Result, repeated, unless_gone, wait_for_taken};
pub use exhausted::what_ran_out;
pub use facts::{
    AffinityDomains, BlockAccess, Clocks, DeviceFacts, DeviceKind, FloatFeatures, HardwareVersion,
    ImageLimits, LaunchLimits, Luid, Partition, PartitionKind, Reach, ThrottleReasons, UnitLayout,
    UsmAccess, UsmSupport, VectorWidths,
};
pub use graphs::{Execution, Graphs};
pub use images::{
    ChannelType, Channels, Filter, ImageDesc, ImageKind, Layout, MakesImages, MakesSamplers, Part,
    PixelFormat, Repeat, SamplerDesc, copy_between,
};
pub use memory::{
    Access, Adopted, Granularity, KnownMemory, MemoryKind, MemoryRequest, NativeHandle, NativeKind,
    NativeObject,
};
pub use modules::{Modules, Piece};
pub use moments::{Moment, host_clock, new_object, objects_so_far};
pub use notice::Severity;
pub use pattern::{
    KeptPattern, Pattern, PatternLength, RowPattern, doubled, greatest_common_divisor,
};
pub use peers::ReachesPeers;
pub use placement::Placement;
pub use rows::Rows;
pub use shares::{
    Export, Foreign, Shares, Travels, contradiction, payload_bytes, payload_data, refused_import,
    too_large,
};
pub use stream_states::{StreamState, StreamStates};
pub use streams::{AdoptedStream, EventSharing, Notification, Streams};
pub use submission::{
    Completion, DefaultStream, Order, Priority, Profile, Status, StreamRequest, Submission, Times,
    Wait,
};
pub use types::{Memory, Object, Types};
pub use virtual_memory::VirtualMemory;

#[cfg(test)]
mod tests;
