//! Members of a consumer group, polled by threads of their own, and a board on which each shows what it holds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::message::Message;

use crate::kafka::config;
use crate::{Failure, token, var};

/// For a group to settle or to read.
pub const WAIT: Duration = Duration::from_secs(45);
const SESSION_MS: &str = "6000"; // of every member; the least that is allowed
const SHORT: Duration = Duration::from_millis(100);

/// How a member takes part.
#[derive(Clone, Copy, Default)]
pub struct How {
    pub instance: Option<&'static str>,
    pub cooperative: bool,
}

/// What one member was told.
#[derive(Default)]
pub struct Seat {
    pub held: BTreeSet<i32>,
    /// How many times it was given partitions, none included.
    pub told: usize,
}

/// The members' seats, in the order in which they joined.
#[derive(Default)]
pub struct Seats {
    pub seats: BTreeMap<usize, Seat>,
    failed: Option<String>,
}

#[derive(Default)]
struct Board {
    seats: Mutex<Seats>,
    changed: Condvar,
}

impl Board {
    fn change(&self, how: impl FnOnce(&mut Seats)) {
        how(&mut self.seats.lock().expect("no thread panics"));
        self.changed.notify_all();
    }

    fn await_shared(&self) -> Result<(), Failure> {
        let end = Instant::now() + WAIT;
        let mut now = self.seats.lock().expect("no thread panics");
        while !now.shared() {
            if let Some(why) = &now.failed {
                return Err(why.as_str().into());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("the group did not settle: {:?} are held", now.held()).into());
            }
            now = self
                .changed
                .wait_timeout(now, left)
                .expect("no thread panics")
                .0;
        }
        Ok(())
    }
}

impl Seats {
    fn held(&self) -> Vec<i32> {
        let mut all: Vec<i32> = self
            .seats
            .values()
            .flat_map(|s| s.held.iter().copied())
            .collect();
        all.sort_unstable();
        all
    }

    /// None holds nothing that need not.
    fn shared(&self) -> bool {
        let idle = self.seats.values().filter(|s| s.held.is_empty()).count();
        self.held() == [0, 1, 2, 3]
            && self.seats.values().all(|s| s.told > 0)
            && idle == self.seats.len().saturating_sub(4)
    }
}

/// A member's place at the board.
struct Place {
    board: Arc<Board>,
    number: usize,
}

impl ClientContext for Place {}

impl ConsumerContext for Place {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.board.change(|all| {
            let Some(seat) = all.seats.get_mut(&self.number) else {
                return; // it is leaving
            };
            match rebalance {
                Rebalance::Assign(list) => {
                    seat.told += 1;
                    seat.held
                        .extend(list.elements().iter().map(|e| e.partition()));
                }
                Rebalance::Revoke(list) => {
                    for e in list.elements() {
                        seat.held.remove(&e.partition());
                    }
                }
                Rebalance::Error(why) => all.failed = Some(why.to_string()),
            }
        });
    }
}

type Member = BaseConsumer<Place>;

fn join(group: &str, how: How, place: Place) -> Result<Member, Failure> {
    let mut config = config(&token("ACME")?)?;
    if let Some(id) = how.instance {
        config.set("group.instance.id", id);
    }
    let assignor = if how.cooperative {
        "cooperative-sticky"
    } else {
        "range"
    };
    let member: Member = config
        .set("group.id", group)
        .set("partition.assignment.strategy", assignor)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("session.timeout.ms", SESSION_MS)
        .set("heartbeat.interval.ms", "200")
        .set("fetch.wait.max.ms", "100")
        .create_with_context(place)?;
    member.subscribe(&[&var("COMPAT_GROUP_TOPIC")?])?;
    Ok(member)
}

/// Reads so many records with one member, which commits them and leaves.
pub fn read(group: &str, count: usize, mut got: impl FnMut(i32, i64)) -> Result<(), Failure> {
    let place = Place {
        board: Arc::default(),
        number: 0,
    };
    let member = join(group, How::default(), place)?;
    let end = Instant::now() + WAIT;
    let mut left = count;
    while left > 0 {
        if Instant::now() > end {
            return Err(format!("{left} records are left").into());
        }
        if let Some(message) = member.poll(SHORT) {
            let message = message?;
            got(message.partition(), message.offset());
            left -= 1;
        }
    }
    Ok(member.commit_consumer_state(CommitMode::Sync)?)
}

/// Takes part for a while, and tells at every poll how many partitions it holds.
pub fn hold(group: &str, mut tell: impl FnMut(usize)) -> Result<(), Failure> {
    let board = Arc::new(Board::default());
    board.change(|all| {
        all.seats.insert(0, Seat::default());
    });
    let place = Place {
        board: Arc::clone(&board),
        number: 0,
    };
    let member = join(group, How::default(), place)?;
    let end = Instant::now() + WAIT;
    while Instant::now() < end {
        if let Some(message) = member.poll(SHORT) {
            message?;
        }
        tell(board.seats.lock().expect("no thread panics").held().len());
    }
    Ok(())
}

struct Polling {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Members of one group.
pub struct Team {
    group: String,
    board: Arc<Board>,
    joined: usize,
    polling: BTreeMap<usize, Polling>,
}

impl Team {
    pub fn of(group: &str) -> Self {
        Team {
            group: group.to_string(),
            board: Arc::default(),
            joined: 0,
            polling: BTreeMap::new(),
        }
    }

    /// Lets one more take part; its number.
    pub fn join(&mut self, how: How) -> Result<usize, Failure> {
        let number = self.joined;
        self.joined += 1;
        let board = Arc::clone(&self.board);
        board.change(|all| {
            all.seats.insert(number, Seat::default());
        });
        let place = Place {
            board: Arc::clone(&board),
            number,
        };
        let member = join(&self.group, how, place)?;
        let over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&over);
        let thread = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                if let Some(Err(why)) = member.poll(SHORT) {
                    board.change(|all| all.failed = Some(why.to_string()));
                    return;
                }
            }
        });
        self.polling.insert(number, Polling { over, thread });
        Ok(number)
    }

    /// Closes one of them; a static member's place in the group is kept.
    pub fn leave(&mut self, number: usize) {
        self.board.change(|all| {
            all.seats.remove(&number);
        });
        if let Some(p) = self.polling.remove(&number) {
            p.over.store(true, Ordering::Relaxed);
            p.thread.join().expect("no thread panics");
        }
    }

    /// Waits until every member was told what it holds, and they share the partitions.
    pub fn settle(&self) -> Result<(), Failure> {
        self.board.await_shared()
    }

    /// Looks at what they hold now.
    pub fn look<T>(&self, at: impl FnOnce(&BTreeMap<usize, Seat>) -> T) -> T {
        at(&self.board.seats.lock().expect("no thread panics").seats)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // All are told before one is waited for.
        for p in self.polling.values() {
            p.over.store(true, Ordering::Relaxed);
        }
        for number in 0..self.joined {
            self.leave(number);
        }
    }
}
