//! From a ticket to what it stands for: the broker first, then the second way; and if both fail, why, in a sentence.
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, Result,
    directory::{Tried, VARIABLE},
    envelope::{Door, Envelope},
    exports::refusal,
    fetch::{Unreached, gone_error},
    hosts,
    identity::{identity, start_time},
    pidfd,
    protocol::Verdict,
    standing::Fetched,
};
use rustix::process::geteuid;

/// So often an exporter is asked that hangs up.
const TRIES: u32 = 4;

/// Gets what the ticket is for from its exporter.
pub(crate) fn obtain(envelope: &Envelope, ticket: &[u8; ENVELOPE_LEN]) -> Result<Fetched> {
    check_whence(envelope)?;
    let mut tries = 0;
    loop {
        let host = match hosts::to(envelope) {
            Ok(host) => host,
            Err(Unreached::Failed(e)) => return Err(e),
            Err(Unreached::NoBroker(tried)) => return second_way(envelope, &tried),
        };
        tries += 1;
        match host.fetch(envelope, ticket) {
            // It hung up without an answer: it died, or its last export was just put back, or others flood it.
            Err(_) if host.is_gone() && tries < TRIES => {}
            Err(e) if e.kind() == ErrorKind::ExporterGone => return Err(hung_up(envelope)),
            fetched => return fetched,
        }
    }
}

/// It hung up each time, without a word.
fn hung_up(envelope: &Envelope) -> Error {
    if exporter_runs(envelope) == Some(false) {
        return gone_error();
    }
    let why = "the exporter hung up again and again without an answer: too many others ask it at once; try again";
    Error::new(ErrorKind::TimedOut, why)
}

fn check_whence(envelope: &Envelope) -> Result<()> {
    let (here, there) = (identity()?.whence, envelope.whence);
    if here.boot == there.boot || here.boot == 0 || there.boot == 0 {
        return Ok(());
    }
    Err(if here.host != 0 && here.host == there.host {
        let why = "this ticket was made before this machine was last booted: start the exporter again and ask for a new ticket";
        Error::new(ErrorKind::OtherBoot, why)
    } else {
        let why = "this ticket was made on another machine: memory and events are shared between processes of one machine only";
        Error::new(ErrorKind::OtherHost, why)
    })
}

fn second_way(envelope: &Envelope, tried: &Tried) -> Result<Fetched> {
    // Where its socket should be, there is none, or nobody listens: it is no matter of ways.
    let looked_there = tried.ids.contains(&envelope.directory);
    if looked_there || !pidfd::is_open(envelope) || exporter_runs(envelope) == Some(false) {
        return Err(explain(envelope, tried));
    }
    pidfd::fetch(envelope).map_err(|e| match e.kind() {
        ErrorKind::Denied | ErrorKind::KernelLacks => e.advise(format!(
            "its socket is not in any directory where this process looks ({}): set {VARIABLE} to the same directory for both, which needs no such permission",
            tried.text
        )),
        _ => e,
    })
}

/// Whether a process with the exporter's pid and start time runs; nothing where pids mean something else.
fn exporter_runs(envelope: &Envelope) -> Option<bool> {
    let (here, there) = (identity().ok()?.whence, envelope.whence);
    let comparable = here.pid_namespace == there.pid_namespace && here.pid_namespace != 0;
    (comparable && there.start_time != 0).then(|| start_time(there.pid) == Some(there.start_time))
}

/// Nobody answers. Whose fault that is shows in where the socket should be, and in whether the process runs.
fn explain(envelope: &Envelope, tried: &Tried) -> Error {
    let same_user = envelope.uid == geteuid().as_raw();
    let looked_there = envelope.directory != 0 && tried.ids.contains(&envelope.directory);
    let errno = |error: Error| tried.errno().map_or(error.clone(), |errno| error.with_errno(errno));
    let pid = envelope.whence.pid;
    if !same_user {
        let user = envelope.uid;
        let why = format!(
            "no exporter of user {user} answers for this ticket, or none that may be reached from here (tried {}): it is gone, or the ticket is not for this user",
            tried.text
        );
        return errno(Error::new(ErrorKind::Unknown, why));
    }
    match exporter_runs(envelope) {
        Some(false) => gone_error(),
        Some(true) if looked_there && tried.is_absent() => refusal(Verdict::Withdrawn),
        Some(true) if tried.denied => {
            let why =
                format!("the exporter's socket may not be used from here (tried {})", tried.text);
            errno(Error::new(ErrorKind::Denied, why))
        }
        Some(true) if looked_there => gone_error(), // its socket refuses: it runs another program now
        None if looked_there => gone_error(),
        runs => {
            let whether = match runs {
                Some(_) => format!("the exporter, process {pid}, runs, but"),
                None => "the exporter runs in another pid namespace or is gone;".into(),
            };
            let others = if envelope.door == Door::Others { " (of mode 0711)" } else { "" };
            let why = format!(
                "{whether} its socket is not in any directory where this process looks (tried {}): set {VARIABLE} to one directory{others} for both, or mount the exporter's here",
                tried.text
            );
            errno(Error::new(ErrorKind::Directory, why))
        }
    }
}
