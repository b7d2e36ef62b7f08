//! The Rust crate rdkafka as a client under test: what a check does and prints is by README.md one folder up.

mod admins;
mod data;
mod groups;
mod kafka;
mod member;
mod txns;

use std::env;
use std::error::Error;
use std::time::Instant;

use data::Record;
use kafka::How;

/// Why a check did not pass.
pub enum Failure {
    Skip(String),
    Error(Box<dyn Error>),
}

impl<E: Into<Box<dyn Error>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Error(error.into())
    }
}

type Done = Result<(), Failure>;

/// The crate's, as Cargo.toml has it.
const VERSION: &str = "0.39.0";
const PLAIN: How = How {
    codec: "none",
    idempotent: false,
};
const IDEMPOTENT: How = How {
    codec: "none",
    idempotent: true,
};

/// What the crate cannot do.
const CANNOT: [(&str, &str); 4] = [
    (
        "t-0",
        "librdkafka takes a timestamp of 0 for none, and sends the time of producing",
    ),
    (
        "said.admin-configs",
        "alter_configs reports success, whatever became of a topic",
    ),
    (
        "member.admin-groups",
        "its description of a member holds bytes, which are the application's to read",
    ),
    (
        "delete.admin-groups",
        "its AdminClient deletes groups, not single offsets",
    ),
];

fn main() {
    if groups::be_victim() {
        return;
    }
    println!("client rdkafka-rust {VERSION}");
    for (what, why) in CANNOT {
        println!("cannot {what}: {why}");
    }
    one("connect", connect);
    one("bad-token", |check| refusal(check, "not-a-token"));
    one("missing-scope", |check| {
        refusal(check, &token("ACME_NOREAD")?)
    });
    one("scope-produce", scope_produce);
    one("scope-consume", scope_consume);
    one("create-by-produce", |check| produce(check, check, PLAIN));
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        one(&format!("codec-{codec}"), |check| {
            produce(
                check,
                "codec",
                How {
                    codec,
                    idempotent: false,
                },
            )
        });
    }
    for check in ["keys-and-nulls", "headers", "timestamps", "sizes"] {
        one(check, |check| produce(check, check, PLAIN));
    }
    one("consume", consume);
    one("seek", seek);
    one("by-time", by_time);
    one("isolation", isolation);
    one("idempotent", |check| produce(check, check, IDEMPOTENT));
    groups::checks();
    admins::checks();
    txns::checks();
}

fn one(check: &str, does: impl FnOnce(&str) -> Done) {
    let start = Instant::now();
    let line = match does(check) {
        Ok(()) => format!("pass {check}"),
        Err(Failure::Skip(why)) => format!("skip {check}: {}", one_line(&why)),
        Err(Failure::Error(why)) => format!("fail {check}: {}", one_line(&why.to_string())),
    };
    println!("{line}");
    eprintln!("{line} ({} ms)", start.elapsed().as_millis());
}

pub fn var(name: &str) -> Result<String, Failure> {
    env::var(name).map_err(|e| format!("{name}: {e}").into())
}

fn token(label: &str) -> Result<String, Failure> {
    var(&format!("QUEEN_EDGE_TOKEN_{label}"))
}

/// The name of what a check makes: a topic, a group, a transactional id.
fn named(check: &str) -> Result<String, Failure> {
    Ok(format!(
        "{}-rdkafka-rust-{VERSION}-{check}",
        var("COMPAT_RUN")?
    ))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn connect(_: &str) -> Done {
    let brokers = kafka::brokers(&token("ACME")?)?;
    let want = [var("QUEEN_EDGE_BOOTSTRAP")?];
    if brokers != want {
        return Err(format!("brokers {brokers:?}, want {want:?}").into());
    }
    Ok(())
}

fn refusal(check: &str, password: &str) -> Done {
    println!("said {check} {}", one_line(&kafka::refused(password)?));
    Ok(())
}

fn scope_produce(check: &str) -> Done {
    let never = Record {
        value: Some(b"never".to_vec()),
        ..Record::default()
    };
    unauthorized(
        check,
        kafka::produce(
            &token("ACME_CONSUME")?,
            &var("COMPAT_READ_TOPIC")?,
            PLAIN,
            &[never],
        ),
    )
}

fn scope_consume(check: &str) -> Done {
    unauthorized(
        check,
        kafka::read(&token("ACME_PRODUCE")?, &var("COMPAT_READ_TOPIC")?, 1, &[0]),
    )
}

/// Prints what came instead of success.
fn unauthorized<T>(check: &str, result: Result<T, Failure>) -> Done {
    match result {
        Ok(_) => Err("it was allowed".into()),
        Err(Failure::Error(error)) => {
            println!("said {check} {}", one_line(&error.to_string()));
            Ok(())
        }
        Err(skip) => Err(skip),
    }
}

fn produce(check: &str, lines: &str, how: How) -> Done {
    let topic = named(check)?;
    println!("topic {check} {topic}");
    let without = CANNOT.map(|(what, _)| what);
    kafka::produce(&token("ACME")?, &topic, how, &data::lines(lines, &without)?)
}

fn print(check: &str, records: &[Record]) {
    for record in records {
        println!("read {check} {}", data::fields(record));
    }
}

fn consume(check: &str) -> Done {
    let count = var("COMPAT_READ_COUNT")?.parse()?;
    print(
        check,
        &kafka::read(&token("ACME")?, &var("COMPAT_READ_TOPIC")?, count, &[0])?,
    );
    Ok(())
}

fn seek(check: &str) -> Done {
    print(
        check,
        &kafka::read(&token("ACME")?, &var("COMPAT_READ_TOPIC")?, 1, &[5, 1])?,
    );
    Ok(())
}

fn by_time(check: &str) -> Done {
    let (acme, topic) = (token("ACME")?, var("COMPAT_TIME_TOPIC")?);
    let offset = kafka::offset_at(&acme, &topic, var("COMPAT_TIME")?.parse()?)?;
    print(check, &kafka::read(&acme, &topic, 1, &[offset])?);
    Ok(())
}

fn isolation(check: &str) -> Done {
    let (globex, topic) = (token("GLOBEX")?, var("COMPAT_READ_TOPIC")?);
    let end = kafka::end(&globex, &topic)?;
    print(
        check,
        &kafka::read(&globex, &topic, usize::try_from(end)?, &[0])?,
    );
    for name in kafka::topics(&globex)? {
        println!("list {name}");
    }
    Ok(())
}
