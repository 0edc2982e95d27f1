//! Connections that end while the processes at both ends live: no process is taken for dead, and what was opened
//! stands.
mod common;
use common::*;
use rustix::process::Signal;
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use common::{no_clone as cloned, no_fork as forked};

fn main() -> ExitCode {
    common::main(|| {
        vec![
            trial(
                "a_connection_lost_by_a_fault_of_the_exporters_is_replaced_and_nobody_is_taken_for_dead",
                fault_of_the_exporter,
            ),
            trial(
                "an_exporter_that_is_stopped_before_it_answers_is_waited_for",
                stopped_before_it_answers,
            ),
            trial(
                "a_stopped_exporter_whose_socket_is_not_found_is_not_taken_for_dead",
                stopped_and_not_found,
            ),
            trial(
                "nor_is_one_in_another_network_namespace_whose_sockets_are_not_listed_here",
                stopped_in_another_network,
            ),
            trial(
                "what_is_opened_anew_is_kept_though_the_object_is_open_over_a_connection_that_is_lost",
                opened_anew,
            ),
            trial("an_exporter_that_dies_before_it_answers_is_gone", dies_before_it_answers),
            trial(
                "an_exporter_that_becomes_another_program_is_gone_wherever_its_socket_is",
                becomes_another_program,
            ),
            trial(
                "an_importer_that_does_not_come_back_loses_its_leases_when_it_ends",
                does_not_come_back,
            ),
            trial(
                "a_counter_that_was_granted_too_late_to_be_read_is_given_back",
                counter_granted_too_late,
            ),
        ]
    })
}

/// An exporter whose broker will panic while serving one connection; two peers that wait for one of its events; and
/// what it has exported: that event, another one which the first peer signals, and memory which the first peer has
/// open.
struct Scene {
    place: Place,
    exporter: Peer,
    cut: Peer,
    other: Peer,
    event: String,
    owed: String,
    memory: String,
    spare: String,
}
impl Scene {
    fn new(prepare: impl FnOnce(&mut std::process::Command)) -> Self {
        let place = Place::new();
        let mut exporter = Peer::start(&place.0, |command| {
            // Late enough that everything is open by then; after that, only the peer whose connection is to fail makes
            // requests.
            command.env("CAUSEWAY_PANIC_AT", "watcher.hear:40");
            prepare(command);
        });
        let (mut cut, mut other) = (Peer::at(&place.0), Peer::at(&place.0));
        for name in ["e", "f"] {
            exporter.ask(&format!("slot {name}"));
        }
        let [event, owed] = ["e", "f"].map(|name| exporter.ask(&format!("export-slot {name}")));
        let memory = exporter.ask("export hello 1 same");
        let spare = exporter.ask("export spare 2 same");
        exporter.ask("signal e");
        for importer in [&mut other, &mut cut] {
            importer.ask(&format!("open-event {event}"));
            assert_eq!(importer.ask(&format!("wait-aside {event}")), "waiting");
        }
        cut.ask(&format!("open-event {owed}"));
        cut.ask(&format!("open {memory}"));
        assert_eq!(cut.ask(&format!("signal {owed}")), "ok");
        assert_eq!(exporter.ask("wait-aside f"), "waiting");
        Self { place, exporter, cut, other, event, owed, memory, spare }
    }
    fn has_had_its_fault(&mut self) -> bool {
        self.exporter.ask("notices").contains("a fault in the thread")
    }
    /// The first peer opens and closes until the broker panics while serving it; the peer notices nothing.
    fn cut_off(&mut self) {
        assert!(!self.has_had_its_fault(), "too early");
        let (open, close) = (format!("open {}", self.spare), format!("close {}", self.spare));
        eventually("the fault", || {
            let opened = self.cut.ask(&open);
            assert_eq!((&*opened, &*self.cut.ask(&close)), ("remote spare 16 32", "ok"));
            self.has_had_its_fault()
        });
    }
    /// No process was told of a death, what is open is kept, and what was closed is given back.
    fn goes_on(mut self) {
        for peer in [&mut self.exporter, &mut self.cut, &mut self.other] {
            assert_eq!(peer.ask("is-waiting"), "true");
        }
        assert_eq!(self.exporter.ask("complete"), "ok");
        assert_eq!(
            self.other.ask("waited"),
            "Complete",
            "of another's connection nothing was known"
        );
        assert_eq!(self.cut.ask("waited"), "Complete");
        assert_eq!(self.cut.ask("complete"), "ok");
        assert_eq!(self.exporter.ask("waited"), "Complete", "it was not taken for dead either");
        assert_eq!(self.cut.ask(&format!("current {}", self.memory)), "current");
        assert_eq!(self.exporter.ask("leased 1"), "true");
        self.exporter.ask("free 1");
        assert_eq!(self.exporter.ask("leased 1"), "true", "its memory is not given to anybody");
        self.cut.tell(&format!("close {}", self.memory));
        assert_eq!(self.cut.hear(), "ok");
        assert_eq!(self.exporter.hear(), "lease of 1 gone");
        eventually("what was closed is given back", || self.exporter.ask("leased 2") == "false");
        // New signals in both directions, with the existing counters.
        assert_eq!(self.exporter.ask("signal e"), "ok");
        assert_eq!(self.cut.ask(&format!("wait-aside {}", self.event)), "waiting");
        assert_eq!(self.exporter.ask("complete"), "ok");
        assert_eq!(self.cut.ask("waited"), "Complete");
        assert_eq!(self.cut.ask(&format!("signal {}", self.owed)), "ok");
        assert_eq!(self.exporter.ask("wait-aside f"), "waiting");
        self.cut.kill();
        assert_eq!(self.exporter.ask("waited"), "Failed", "its death is heard of as ever");
    }
}

fn fault_of_the_exporter() -> Verdict {
    let mut scene = Scene::new(|_| {});
    scene.cut_off();
    scene.goes_on();
    Ok(())
}
fn stopped_before_it_answers() -> Verdict {
    let mut scene = Scene::new(|command| {
        command.env("CAUSEWAY_STOP_AT", "broker.severed");
    });
    let (open, close) = (format!("open {}", scene.spare), format!("close {}", scene.spare));
    let asked = eventually_stopped(&mut scene, &open, &close);
    assert!(asked.0.starts_with("TimedOut"), "{}", asked.0);
    assert!(asked.1 < Duration::from_millis(3500), "{:?}", asked.1);
    assert_eq!(scene.cut.ask("is-waiting"), "true");
    assert_eq!(scene.cut.ask(&format!("current {}", scene.memory)), "current");
    scene.exporter.signal(Signal::CONT);
    eventually("it is served again", || scene.cut.ask(&open) == "remote spare 16 32");
    scene.cut.ask(&close);
    scene.goes_on();
    Ok(())
}
/// Opens until the exporter stops itself; returns the last answer that the importer got, and after how long.
fn eventually_stopped(scene: &mut Scene, open: &str, close: &str) -> (String, Duration) {
    let mut told = None;
    eventually("the exporter is stopped", || {
        let asked = Instant::now();
        let answer = scene.cut.ask(open);
        if answer == "remote spare 16 32" {
            scene.cut.ask(close);
        } else {
            scene.exporter.await_stop();
            told = Some((answer, asked.elapsed()));
        }
        told.is_some()
    });
    told.unwrap()
}
/// The exporter is stopped just before it binds its name again, for longer than a running exporter takes for that.
fn is_waited_for(mut scene: Scene) {
    let (open, close) = (format!("open {}", scene.spare), format!("close {}", scene.spare));
    let directory = scene.place.0.clone();
    let told = loop {
        // While it runs, it binds the name again.
        let names = scene.place.names();
        names.iter().for_each(|name| std::fs::remove_file(directory.join(name)).unwrap_or(()));
        let answer = scene.cut.ask(&open);
        if answer != "remote spare 16 32" {
            break answer;
        }
        scene.cut.ask(&close);
    };
    assert!(told.starts_with("TimedOut"), "{told}");
    scene.exporter.await_stop();
    for _ in 0..3 {
        let told = scene.cut.ask(&open); // two seconds each
        assert!(told.starts_with("TimedOut"), "{told}");
    }
    assert_eq!(scene.cut.ask("is-waiting"), "true");
    assert_eq!(scene.other.ask("is-waiting"), "true");
    scene.exporter.signal(Signal::CONT);
    eventually("it is served again", || scene.cut.ask(&open) == "remote spare 16 32");
    scene.cut.ask(&close);
    scene.goes_on();
}
fn stopped_and_not_found() -> Verdict {
    is_waited_for(Scene::new(|command| {
        command.env("CAUSEWAY_STOP_AT", "broker.severed");
    }));
    Ok(())
}
fn stopped_in_another_network() -> Verdict {
    let by = another_network()?;
    is_waited_for(Scene::new(|command| {
        command.env("CAUSEWAY_STOP_AT", "broker.severed");
        *command = like(command, started_by(&by, command.get_program().as_ref()));
    }));
    Ok(())
}
/// A command prefix that starts programs in another network namespace, where other sockets are listed.
fn another_network() -> Result<Vec<&'static str>, Skip> {
    let mut by = vec!["unshare", "--net"];
    by.extend((!is_root()).then_some("--map-root-user"));
    can(&[&by[..], &["true"]].concat()).map(|()| by)
}
fn becomes_another_program() -> Verdict {
    let place = Place::new();
    let by = another_network()?;
    let (mut exporter, mut importer) = (Peer::started_by(&place.0, &by), Peer::at(&place.0));
    exporter.ask("slot e");
    let event = exporter.ask("export-slot e");
    importer.ask(&format!("open-event {event}"));
    exporter.ask("signal e");
    assert_eq!(importer.ask(&format!("wait-aside {event}")), "waiting");
    for name in place.names() {
        std::fs::remove_file(place.0.join(name)).unwrap();
    }
    exporter.tell("exec");
    assert_eq!(importer.ask("waited"), "Failed");
    Ok(())
}
fn dies_before_it_answers() -> Verdict {
    let mut scene = Scene::new(|command| {
        command.env("CAUSEWAY_STOP_AT", "broker.severed");
    });
    let (open, close) = (format!("open {}", scene.spare), format!("close {}", scene.spare));
    eventually_stopped(&mut scene, &open, &close);
    scene.exporter.kill();
    assert_eq!(scene.cut.ask("waited"), "Failed");
    assert_eq!(scene.other.ask("waited"), "Failed");
    assert!(scene.cut.ask(&open).starts_with("ExporterGone"));
    assert!(scene.cut.ask(&format!("current {}", scene.memory)).starts_with("ExporterGone"));
    Ok(())
}
fn opened_anew() -> Verdict {
    let place = Place::new();
    let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
    let [before, after] = [(); 2].map(|()| exporter.ask("export hello 1 same"));
    let [open, open_anew] = [&before, &after].map(|ticket| format!("open {ticket}"));
    assert_eq!(importer.ask(&open), "remote hello 16 32");
    assert_eq!(importer.ask("hang-up"), "ok");
    let current = format!("current {before}");
    eventually("the loss", || importer.ask(&current).starts_with("Freed"));
    assert_eq!(importer.ask(&open_anew), "remote hello 16 32");
    assert_eq!(importer.ask(&format!("close {before}")), "ok");
    let spare = exporter.ask("export spare 2 same");
    assert_eq!(importer.ask(&format!("open {spare}")), "remote spare 16 32"); // ends of leases are told by then
    assert_eq!(exporter.ask("leased 1"), "true", "it would be given to others");
    assert_eq!(importer.ask(&format!("close {after}")), "ok");
    eventually("its lease ends", || exporter.ask("leased 1") == "false");
    Ok(())
}
fn does_not_come_back() -> Verdict {
    let mut scene = Scene::new(|_| {});
    scene.cut_off();
    scene.cut.kill();
    eventually("its lease ends", || scene.exporter.ask("leased 1") == "false");
    assert_eq!(scene.exporter.ask("waited"), "Failed", "what it owed");
    assert_eq!(scene.exporter.ask("complete"), "ok");
    assert_eq!(scene.other.ask("waited"), "Complete");
    Ok(())
}
fn counter_granted_too_late() -> Verdict {
    let counts = [false, true].map(|stops| {
        let place = Place::new();
        let (mut exporter, mut importer) = (Peer::at(&place.0), Peer::at(&place.0));
        exporter.ask("slot e");
        let event = exporter.ask("export-slot e");
        importer.ask(&format!("open-event {event}"));
        if stops {
            exporter.signal(Signal::STOP);
            let (taken, refusal) = importer.take_counters(&event, 1);
            exporter.signal(Signal::CONT);
            assert!(taken == 0 && refusal.starts_with("TimedOut"), "{taken} {refusal}");
        }
        let (taken, refusal) = importer.take_counters(&event, usize::MAX);
        assert!(refusal.starts_with("Full"), "{refusal}");
        taken
    });
    assert_eq!(counts[0], counts[1], "one is lost");
    Ok(())
}
