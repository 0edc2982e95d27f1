//! Obtains what a ticket names: through the exporter's broker first, then through `pidfd`. If both fail, the error
//! explains why.
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, Result,
    deadline::Deadline,
    directory::{Tried, VARIABLE, is_listening},
    envelope::{Envelope, SocketScope},
    fetch::{Unreached, gone_error},
    hosts,
    identity::{identity, start_time},
    pidfd,
    standing::Fetched,
};
use rustix::process::geteuid;

/// How often an exporter that hangs up without an answer is tried.
const TRIES: u32 = 4;

/// Obtains what the ticket names from its exporter, within one [`Deadline`] for all attempts together.
pub(crate) fn obtain(envelope: &Envelope, ticket: &[u8; ENVELOPE_LEN]) -> Result<Fetched> {
    let deadline = Deadline::new();
    let mut tries = 0;
    loop {
        let host = match hosts::to(envelope, deadline.at()) {
            Ok(host) => host,
            Err(Unreached::Failed(e)) => return Err(e),
            Err(Unreached::NoBroker(tried)) => return second_way(envelope, &tried),
        };
        tries += 1;
        match host.fetch(envelope, ticket, &deadline) {
            // The exporter hung up without an answer: it died, its last export was just withdrawn, or it is overloaded.
            Err(_) if host.is_gone() && tries < TRIES => {}
            Err(e) if e.kind() == ErrorKind::ExporterGone => return Err(hung_up(envelope)),
            fetched => return fetched,
        }
    }
}

/// The error when the exporter hung up each time without an answer.
fn hung_up(envelope: &Envelope) -> Error {
    if exporter_runs(envelope) == Some(false) {
        return gone_error();
    }
    let why = "the exporter hung up again and again without an answer: too many others ask it at once; try again";
    Error::new(ErrorKind::TimedOut, why)
}

/// Whether this process and the exporter see the same boot id. A container may show one of its own, so this affects
/// only the explanation of a failure.
fn is_of_this_boot(envelope: &Envelope) -> bool {
    let here = identity().map_or(0, |identity| identity.origin.boot);
    let there = envelope.origin.boot;
    here == there || here == 0 || there == 0
}

/// The error when no exporter answers and the ticket names another boot id.
fn of_another_boot(envelope: &Envelope, tried: &Tried) -> Error {
    let here = identity().map_or(0, |identity| identity.origin.host);
    let reach = format!(
        "nobody answers for it here (tried {}); if its exporter runs in a container of this machine, set {VARIABLE} to one directory for both",
        tried.text
    );
    if here != 0 && here == envelope.origin.host {
        let why = "this ticket was made before this machine was last booted, or where another boot id is shown: start the exporter again and ask for a new ticket";
        return Error::new(ErrorKind::OtherBoot, why).advise(reach);
    }
    let why = "this ticket was made on another machine, or in a container that is shown another boot id: memory and events are shared between processes of one machine only";
    Error::new(ErrorKind::OtherHost, why).advise(reach)
}

fn second_way(envelope: &Envelope, tried: &Tried) -> Result<Fetched> {
    // If the socket is missing, or has no listener, in the directory where it should be, a second way cannot help.
    let looked_there = tried.was_in(envelope.directory);
    if looked_there || !pidfd::is_open(envelope) || exporter_runs(envelope) == Some(false) {
        return Err(explain(envelope, tried));
    }
    pidfd::fetch(envelope).map_err(|e| match e.kind() {
        ErrorKind::Denied | ErrorKind::KernelLacks | ErrorKind::ExporterGone
            if !is_of_this_boot(envelope) =>
        {
            of_another_boot(envelope, tried)
        }
        ErrorKind::Denied | ErrorKind::KernelLacks => e.advise(format!(
            "its socket is not in any directory where this process looks ({}): set {VARIABLE} to the same directory for both, which needs no such permission",
            tried.text
        )),
        _ => e,
    })
}

/// Whether a process with the exporter's pid and start time runs; `None` where the two pids cannot be compared.
fn exporter_runs(envelope: &Envelope) -> Option<bool> {
    let (here, there) = (identity().ok()?.origin, envelope.origin);
    let comparable = here.pid_namespace == there.pid_namespace && here.pid_namespace != 0;
    let comparable = comparable && is_of_this_boot(envelope);
    (comparable && there.start_time != 0).then(|| start_time(there.pid) == Some(there.start_time))
}

/// The error when no exporter answers. Where the socket should be and whether the process runs determine the cause.
fn explain(envelope: &Envelope, tried: &Tried) -> Error {
    let us = geteuid().as_raw();
    // In a user namespace that maps users to other numbers, the owner of the exporter's directory tells whose it is.
    let owner = tried.owner_of(envelope.directory);
    let (same_user, looked_there) = (owner.unwrap_or(envelope.uid) == us, owner.is_some());
    let errno = |error: Error| tried.errno().map_or(error.clone(), |errno| error.with_errno(errno));
    let pid = envelope.origin.pid;
    if !looked_there && !is_of_this_boot(envelope) {
        return errno(of_another_boot(envelope, tried));
    }
    if !same_user {
        let user = envelope.uid;
        let why = format!(
            "no exporter of user {user} answers for this ticket, or none that may be reached from here (tried {}): it is gone, or the ticket is not for this user (if it runs in another user namespace, set {VARIABLE} to one directory for both)",
            tried.text
        );
        let kind = if tried.denied { ErrorKind::Denied } else { ErrorKind::Unknown };
        return errno(Error::new(kind, why));
    }
    match exporter_runs(envelope) {
        Some(false) => gone_error(),
        Some(true)
            if looked_there
                && tried.is_absent()
                && is_listening(envelope.instance, envelope.scope) == Some(true) =>
        {
            let why = format!(
                "the name of the exporter's socket was removed (tried {}); the exporter binds it again within two seconds: try again then, and keep cleaners of temporary files off that directory",
                tried.text
            );
            errno(Error::new(ErrorKind::Unreachable, why))
        }
        Some(true) if looked_there && tried.is_absent() => {
            let why = "the exporter shares nothing any more: it has withdrawn this ticket, or freed the object behind it; ask it for a new one";
            Error::new(ErrorKind::Withdrawn, why)
        }
        Some(true) if tried.denied => {
            let why =
                format!("the exporter's socket may not be used from here (tried {})", tried.text);
            errno(Error::new(ErrorKind::Denied, why))
        }
        Some(true) if looked_there => gone_error(), // refused: it runs another program now
        None if looked_there => gone_error(),
        runs => {
            let whether = match runs {
                Some(_) => format!("the exporter, process {pid}, runs, but"),
                None => "the exporter runs in another pid namespace or is gone;".into(),
            };
            let others = if envelope.scope == SocketScope::Others { " (of mode 0711)" } else { "" };
            let why = format!(
                "{whether} its socket is not in any directory where this process looks (tried {}): set {VARIABLE} to one directory{others} for both, or mount the exporter's here",
                tried.text
            );
            errno(Error::new(ErrorKind::Unreachable, why))
        }
    }
}
