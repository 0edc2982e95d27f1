//! Diagnosis for users when sharing does not work: where sockets are looked for, whether those places can be used, and
//! which exporters listen there. Nothing is repaired here.
use crate::{
    access::own_trouble,
    directory::{Directory, candidates},
    envelope::SocketScope,
};
use rustix::process::geteuid;
use std::path::PathBuf;

pub use crate::directory::VARIABLE;

/// A directory in which sockets are looked for.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its path.
    pub path: PathBuf,
    /// Whether it serves exports to users other than the exporter's own.
    pub for_others: bool,
    /// Why it cannot be used, in words; `None` if it can. A missing directory is made when it is needed.
    pub trouble: Option<String>,
    /// The instance ids of exporters that left a socket there. Dead ones are included until the next exporter sweeps.
    pub exporters: Vec<String>,
}

/// All places in which this user's exporters are looked for, in the order of looking.
pub fn places() -> Vec<Place> {
    let user = geteuid().as_raw();
    let mut places = Vec::new();
    for scope in [SocketScope::Private, SocketScope::Others] {
        for path in candidates(user, scope) {
            let opened = Directory::open(&path, &[user]);
            let exporters = opened.map(|d| d.exporters(scope)).unwrap_or_default();
            let mine = own_trouble().map(str::to_owned);
            let trouble = mine.or_else(|| Directory::trouble(&path, user, scope));
            places.push(Place {
                path,
                for_others: scope == SocketScope::Others,
                trouble,
                exporters,
            });
        }
    }
    places
}
