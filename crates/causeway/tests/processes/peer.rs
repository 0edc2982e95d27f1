//! The other process, which is this test program in a role, and the test's handle to it.
use causeway::{
    Buffer, Context, Device, Error, Event, Export, HandOver, PhysicalMemory, Queue, Result, Rights,
    Ticket,
};
use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, ExitCode, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

const ROLE: &str = "CAUSEWAY_TEST_PEER";

/// The test's end of the connection.
pub struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: mpsc::Receiver<String>,
    kind: String,
}
impl Peer {
    pub fn start() -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(ROLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (to, answers) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(from)
                .lines()
                .map_while(|line| to.send(line.unwrap()).ok())
                .for_each(drop);
        });
        Self { child, orders, answers, kind: String::new() }
    }
    /// Sends an order; returns the answer, or the sentence of the error.
    pub fn ask(&mut self, order: &str) -> Result<String, String> {
        self.order(order);
        self.answer()
    }
    /// Sends an order without waiting for its answer.
    pub fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }
    pub fn answer(&mut self) -> Result<String, String> {
        let answer = self.answers.recv_timeout(Duration::from_secs(60)).unwrap();
        match answer.split_once(' ').unwrap() {
            ("ok", answer) => Ok(answer.to_owned()),
            (_, told) => {
                let (kind, sentence) = told.split_once(' ').unwrap();
                self.kind = kind.to_owned();
                Err(sentence.to_owned())
            }
        }
    }
    /// The kind of the last error that it returned.
    pub fn kind(&self) -> &str {
        &self.kind
    }
    #[track_caller]
    pub fn must(&mut self, order: &str) -> String {
        self.ask(order).unwrap_or_else(|sentence| panic!("{order}: {sentence}"))
    }
    /// Waits until it has ended by itself.
    pub fn wait(&mut self) {
        self.child.wait().unwrap();
    }
    /// A function that sends it a signal, by name.
    pub fn signals(&self) -> impl Fn(&str) + Send + 'static {
        let id = self.child.id().to_string();
        move |name| {
            let status = Command::new("kill").args(["-s", name, &id]).status().unwrap();
            assert!(status.success(), "kill -s {name}: {status}");
        }
    }
    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn is_role() -> bool {
    env::var_os(ROLE).is_some()
}

/// Executes orders until the test is gone.
pub fn serve() -> ExitCode {
    let context = Context::new(&Device::first().unwrap()).unwrap();
    let queue = Queue::new(&context).unwrap();
    let mut role = Role {
        context,
        queue,
        hand_over: None,
        offer: None,
        buffer: None,
        event: None,
        exports: Vec::new(),
        debt: None,
    };
    for order in io::stdin().lines() {
        let order = order.unwrap();
        let (verb, argument) = order.split_once(' ').unwrap_or((&order, ""));
        match role.obey(verb, argument) {
            Ok(answer) => println!("ok {answer}"),
            Err(error) => println!("error {:?} {error}", error.kind()),
        }
        if ["last-signal", "end"].contains(&verb) {
            break; // drops the queue, and ends
        }
    }
    ExitCode::SUCCESS
}

struct Role {
    hand_over: Option<HandOver>,
    offer: Option<Export<HandOver>>,
    context: Context,
    queue: Queue,
    buffer: Option<Buffer<u8>>,
    event: Option<Event>,
    exports: Vec<Export<Buffer<u8>>>,
    debt: Option<(mpsc::Sender<()>, Export<Event>)>,
}
impl Role {
    fn buffer(&self) -> &Buffer<u8> {
        self.buffer.as_ref().expect("opened")
    }
    fn event(&self) -> &Event {
        self.event.as_ref().expect("opened")
    }
    fn obey(&mut self, verb: &str, argument: &str) -> Result<String> {
        match verb {
            "open-floats" => drop(self.context.open::<Buffer<f32>>(&argument.parse()?)?),
            "open" => self.buffer = Some(self.context.open(&argument.parse()?)?),
            "map" => {
                let ticket: Ticket<PhysicalMemory> = argument.parse()?;
                let mapping = self.context.open(&ticket)?.map(Rights::ReadWrite)?;
                self.buffer = Some(mapping.buffer()?);
            }
            "event" => self.event = Some(self.context.open(&argument.parse()?)?),
            "sum" => {
                let bytes = self.buffer().to_vec(&self.queue)?;
                return Ok(bytes.iter().map(|&byte| usize::from(byte)).sum::<usize>().to_string());
            }
            "fill" => self.buffer().fill(&self.queue, argument.parse().expect("a number"))?,
            "status" => return Ok(format!("{:?}", self.event().status()?)),
            "wait-then-double" => {
                self.queue.wait_for(&[self.event()])?;
                let half = self.buffer().len() / 2;
                self.queue.fill(&self.buffer().slice(half..)?, 3)?;
                self.queue.signal(self.event())?;
            }
            "last-signal" => {
                self.queue.wait_for(&[self.event()])?;
                self.queue.fill(self.buffer(), 3)?;
                self.queue.signal(self.event())?;
            }
            "hand-over" => self.hand_over = Some(self.context.open(&argument.parse()?)?),
            "create-hand-over" => {
                let hand_over = HandOver::new(&self.queue)?;
                let export = hand_over.share()?;
                let text = export.ticket().to_string();
                (self.hand_over, self.offer) = (Some(hand_over), Some(export));
                return Ok(text);
            }
            "turns" => {
                let hand_over = self.hand_over.as_mut().expect("opened");
                let turns: u32 = argument.parse().expect("a number");
                for _ in 0..turns {
                    hand_over.take(&self.queue)?;
                    let half = self.buffer.as_ref().expect("opened").slice(..500)?;
                    self.queue.copy(&half, &self.buffer.as_ref().expect("opened").slice(500..)?)?;
                    hand_over.give(&self.queue)?;
                }
            }
            "end" => {}
            "reshare" => drop(self.buffer().share()?),
            "share" => return self.share(argument),
            "owe" => return self.owe(),
            "pay" => drop(self.debt.as_ref().map(|(gate, _)| gate.send(()))),
            other => panic!("no such order: {other}"),
        }
        Ok("done".to_owned())
    }
    fn share(&mut self, argument: &str) -> Result<String, Error> {
        let (len, value) = argument.split_once(' ').expect("two numbers");
        let buffer = Buffer::new(&self.context, len.parse().expect("a number"))?;
        buffer.fill(&self.queue, value.parse::<u8>().expect("a number"))?;
        let export = buffer.share()?;
        let text = export.ticket().to_string();
        self.exports.push(export);
        Ok(text)
    }
    /// Makes a signal that is submitted and not completed until `pay`.
    fn owe(&mut self) -> Result<String, Error> {
        let (open, opened) = mpsc::channel();
        let task = move || {
            let _ = opened.recv();
        };
        self.queue.host_task(task)?;
        let event = self.context.create_shared_event()?;
        self.queue.signal(&event)?;
        let export = event.share()?;
        let text = export.ticket().to_string();
        self.debt = Some((open, export));
        Ok(text)
    }
}
