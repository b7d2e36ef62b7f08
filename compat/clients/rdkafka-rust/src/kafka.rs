//! The Rust crate rdkafka: what the checks need of it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::data::Record;
use crate::{Failure, var};

const DEADLINE: Duration = Duration::from_secs(10);
const NO_GROUP: &str = "none";
const SHORT: Duration = Duration::from_millis(100);

/// How records are produced.
#[derive(Clone, Copy)]
pub struct How {
    pub codec: &'static str,
    pub idempotent: bool,
}

/// What a client logs and what was not delivered.
#[derive(Clone, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    undelivered: Arc<Mutex<Vec<String>>>,
}

impl Log {
    fn add(&self, line: String) {
        eprintln!("{line}");
        self.lines.lock().expect("no thread panics").push(line);
    }

    fn text(&self) -> String {
        self.lines.lock().expect("no thread panics").join(" | ")
    }
}

impl ClientContext for Log {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        self.add(format!("{facility}: {message}"));
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.add(format!("{error}: {reason}"));
    }
}

impl ConsumerContext for Log {}

impl ProducerContext for Log {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.undelivered
                .lock()
                .expect("no thread panics")
                .push(error.to_string());
        }
    }
}

pub fn config(token: &str) -> Result<ClientConfig, Failure> {
    let mut config = ClientConfig::new();
    // Where nobody logs by the crate log, it says nothing below an error.
    config.set_log_level(RDKafkaLogLevel::Notice);
    config
        .set("bootstrap.servers", var("QUEEN_EDGE_BOOTSTRAP")?)
        .set("security.protocol", "sasl_ssl")
        .set("ssl.ca.location", var("QUEEN_EDGE_CA")?)
        .set("sasl.mechanism", "PLAIN")
        .set("sasl.username", "rdkafka-rust")
        .set("sasl.password", token);
    Ok(config)
}

/// A consumer that joins nothing: a group.id is asked for, and without subscribing no group of
/// this name comes to be.
pub fn consumer(token: &str, log: &Log, group: &str) -> Result<BaseConsumer<Log>, Failure> {
    Ok(config(token)?
        .set("group.id", group)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .set("fetch.wait.max.ms", "100")
        .create_with_context(log.clone())?)
}

pub fn brokers(token: &str) -> Result<Vec<String>, Failure> {
    let metadata = consumer(token, &Log::default(), NO_GROUP)?.fetch_metadata(None, DEADLINE)?;
    Ok(metadata
        .brokers()
        .iter()
        .map(|b| format!("{}:{}", b.host(), b.port()))
        .collect())
}

pub fn topics(token: &str) -> Result<Vec<String>, Failure> {
    let metadata = consumer(token, &Log::default(), NO_GROUP)?.fetch_metadata(None, DEADLINE)?;
    Ok(metadata
        .topics()
        .iter()
        .map(|t| t.name().to_string())
        .collect())
}

/// Tries to log in; all that a user is shown of the refusal.
pub fn refused(token: &str) -> Result<String, Failure> {
    let log = Log::default();
    let consumer = consumer(token, &log, NO_GROUP)?;
    let Err(error) = consumer.fetch_metadata(None, Duration::from_secs(3)) else {
        return Err("the login succeeded".into());
    };
    // Nothing is shown to those who do not poll.
    let polled = consumer.poll(SHORT).and_then(Result::err);
    Ok(format!(
        "{error} | {} | {}",
        polled.map_or(String::new(), |e| e.to_string()),
        log.text()
    ))
}

pub fn produce(token: &str, topic: &str, how: How, records: &[Record]) -> Result<(), Failure> {
    let log = Log::default();
    let producer: BaseProducer<Log> = config(token)?
        .set("compression.codec", how.codec)
        .set("enable.idempotence", how.idempotent.to_string())
        .set("acks", "all")
        .set("linger.ms", "20")
        .create_with_context(log.clone())?;
    send(&producer, &log, topic, records)?;
    if log.text().contains("does not support compression") {
        return Err(Failure::Skip(format!(
            "it compresses with {} for brokers of Fetch 10 and later only: {}",
            how.codec,
            log.text()
        )));
    }
    Ok(())
}

/// Sends records, and sees that all of them are taken.
pub fn send(
    producer: &BaseProducer<Log>,
    log: &Log,
    topic: &str,
    records: &[Record],
) -> Result<(), Failure> {
    for r in records {
        let mut record = BaseRecord::<[u8], [u8]>::to(topic).partition(0);
        record.key = r.key.as_deref();
        record.payload = r.value.as_deref();
        record.timestamp = r.time;
        record.headers = headers(r);
        producer.send(record).map_err(|(error, _)| error)?;
    }
    producer.flush(DEADLINE)?;
    let undelivered = log.undelivered.lock().expect("no thread panics").join(", ");
    if !undelivered.is_empty() {
        return Err(undelivered.into());
    }
    Ok(())
}

fn headers(record: &Record) -> Option<OwnedHeaders> {
    if record.headers.is_empty() {
        return None;
    }
    let add = |all: OwnedHeaders, (name, value): &(String, Option<Vec<u8>>)| {
        all.insert(Header {
            key: name,
            value: value.as_ref(),
        })
    };
    Some(record.headers.iter().fold(OwnedHeaders::new(), add))
}

/// Reads `count` records of partition 0 from each of the offsets, with one consumer.
pub fn read(
    token: &str,
    topic: &str,
    count: usize,
    offsets: &[i64],
) -> Result<Vec<Record>, Failure> {
    let consumer = consumer(token, &Log::default(), NO_GROUP)?;
    let mut records = Vec::new();
    for (i, &offset) in offsets.iter().enumerate() {
        if i == 0 {
            consumer.assign(&partition_zero(topic, offset)?)?;
        } else {
            consumer.seek(topic, 0, Offset::Offset(offset), DEADLINE)?;
        }
        let end = Instant::now() + DEADLINE;
        while records.len() < count * (i + 1) {
            if Instant::now() > end {
                return Err(format!("{} records after {DEADLINE:?}", records.len()).into());
            }
            if let Some(message) = consumer.poll(SHORT) {
                records.push(record(&message?));
            }
        }
    }
    Ok(records)
}

fn partition_zero(topic: &str, offset: i64) -> Result<TopicPartitionList, Failure> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset))?;
    Ok(list)
}

fn record(message: &BorrowedMessage<'_>) -> Record {
    let headers = message.headers().map_or(Vec::new(), |all| {
        all.iter()
            .map(|h| (h.key.to_string(), h.value.map(<[u8]>::to_vec)))
            .collect()
    });
    Record {
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        time: message.timestamp().to_millis(),
        headers,
    }
}

pub fn offset_at(token: &str, topic: &str, time: i64) -> Result<i64, Failure> {
    let found = consumer(token, &Log::default(), NO_GROUP)?
        .offsets_for_times(partition_zero(topic, time)?, DEADLINE)?;
    match found.elements()[0].offset() {
        Offset::Offset(offset) => Ok(offset),
        other => Err(format!("the offset is {other:?}").into()),
    }
}

pub fn end(token: &str, topic: &str) -> Result<i64, Failure> {
    Ok(consumer(token, &Log::default(), NO_GROUP)?
        .fetch_watermarks(topic, 0, DEADLINE)?
        .1)
}
