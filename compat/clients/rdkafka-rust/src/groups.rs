//! The checks of consumer groups.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::member::{self, How, Seat, Team};
use crate::{Done, Failure, named, one, var};

/// A process that is to be a member and be killed.
const MEMBER: &str = "COMPAT_MEMBER";

pub fn checks() {
    one("group-resume", resume);
    one("group-3", |check| share(check, 3, How::default()));
    one("group-10", |check| share(check, 10, How::default()));
    let cooperative = How {
        cooperative: true,
        ..How::default()
    };
    one("group-cooperative", |check| share(check, 3, cooperative));
    one("group-killed", killed);
    one("group-static", stays);
}

fn group(check: &str) -> Result<String, Failure> {
    let group = named(check)?;
    println!("group {check} {group}");
    Ok(group)
}

fn resume(check: &str) -> Done {
    let group = group(check)?;
    let all = 4 * var("COMPAT_GROUP_COUNT")?.parse::<usize>()?;
    for count in [all / 2, all - all / 2] {
        member::read(&group, count, |partition, offset| {
            println!("got {check} {partition} {offset}");
        })?;
    }
    Ok(())
}

fn share(check: &str, count: usize, how: How) -> Done {
    let mut team = Team::of(&group(check)?);
    for _ in 0..count {
        team.join(how)?;
        if how.cooperative {
            team.settle()?; // so that partitions change hands
        }
    }
    team.settle()?;
    show(check, &team);
    Ok(())
}

fn killed(check: &str) -> Done {
    let group = group(check)?;
    let mut victim = Command::new(env::current_exe()?)
        .env(MEMBER, &group)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut team = Team::of(&group);
    let shared = team
        .join(How::default())
        .and_then(|stays| await_shared(&mut victim, &team, stays));
    victim.kill()?;
    victim.wait()?;
    shared?;
    team.settle()?;
    show(check, &team);
    Ok(())
}

/// Waits until the other process and the member hold something each.
fn await_shared(victim: &mut Child, team: &Team, stays: usize) -> Done {
    let lines = BufReader::new(victim.stdout.take().ok_or("it has no stdout")?).lines();
    for line in lines {
        let line = line?;
        let mine = team.look(|seats| seats[&stays].held.len());
        if ["1", "2", "3"].contains(&line.as_str()) && (1..4).contains(&mine) {
            return Ok(());
        }
    }
    Err("the process that was to be killed ended by itself".into())
}

/// Is a member, if this process is to be one, and prints over and over how many partitions it holds.
pub fn be_victim() -> bool {
    let Ok(group) = env::var(MEMBER) else {
        return false;
    };
    if let Err(Failure::Error(why)) = member::hold(&group, |n| println!("{n}")) {
        eprintln!("{why}");
    }
    true
}

fn stays(check: &str) -> Done {
    let mut team = Team::of(&group(check)?);
    let named = |id| How {
        instance: Some(id),
        ..How::default()
    };
    let stays = team.join(named("stays"))?;
    let restarts = team.join(named("restarts"))?;
    team.settle()?;
    let before = team.look(|seats| seats[&stays].told);
    team.leave(restarts);
    team.join(named("restarts"))?;
    team.settle()?;
    let after = team.look(|seats| seats[&stays].told);
    println!("rebalances {check} {before} {after}");
    show(check, &team);
    Ok(())
}

fn show(check: &str, team: &Team) {
    team.look(|seats| {
        for (i, seat) in seats.values().enumerate() {
            println!("member {check} {i} {}", partitions(seat));
        }
    });
}

fn partitions(seat: &Seat) -> String {
    if seat.held.is_empty() {
        return "none".to_string();
    }
    let words: Vec<String> = seat.held.iter().map(i32::to_string).collect();
    words.join(",")
}
