//! Peers that keep silent, flood, send garbage or descriptors, or never read: none of them can delay another peer.
#[path = "../common/mod.rs"]
mod common;
mod garbage;
mod grants;
mod impostors;
mod limits;
mod talk;

use common::*;
use rustix::{
    fd::{AsFd, OwnedFd},
    io::{Errno, IoSlice},
    net::*,
};
use std::{
    mem::MaybeUninit,
    os::unix::fs::FileTypeExt,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

#[test]
fn role() {
    common::role();
}
use common::{no_clone as cloned, no_fork as forked};
use talk::{connect, say, *};
