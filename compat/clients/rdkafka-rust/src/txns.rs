//! The checks of transactions. Which offsets they commit, and for what: README.md one folder up.

use std::time::Duration;

use rdkafka::consumer::Consumer;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::data::{self, Record};
use crate::kafka::{self, Log};
use crate::{CANNOT, Done, Failure, named, one, one_line, token, var};

const DEADLINE: Duration = Duration::from_secs(10);

pub fn checks() {
    one("txn-commit", commit);
    one("txn-abort", abort);
    one("txn-fenced", fenced);
}

fn commit(check: &str) -> Done {
    let case = Case::of(check)?;
    case.good(&Transactional::open(&case.name)?)
}

fn abort(check: &str) -> Done {
    let case = Case::of(check)?;
    let producer = Transactional::open(&case.name)?;
    case.never(&producer)?;
    producer.producer.abort_transaction(DEADLINE)?;
    case.good(&producer)
}

fn fenced(check: &str) -> Done {
    let case = Case::of(check)?;
    let first = Transactional::open(&case.name)?;
    case.never(&first)?;
    case.good(&Transactional::open(&case.name)?)?;
    let records = first.produce(&case.name, &[value("of a fenced one")]);
    let commit = first.commit();
    let (Err(Failure::Error(records)), Err(Failure::Error(commit))) = (records, commit) else {
        return Err("a fenced producer goes on".into());
    };
    println!(
        "said {check} records: {}; commit: {}",
        one_line(&records.to_string()),
        one_line(&commit.to_string())
    );
    Ok(())
}

fn value(text: &str) -> Record {
    Record {
        value: Some(text.into()),
        ..Record::default()
    }
}

/// What one check has: a topic, a group and a transactional id of one name.
struct Case {
    name: String,
    lines: Vec<Record>,
}

impl Case {
    fn of(check: &str) -> Result<Self, Failure> {
        let name = named(check)?;
        println!("topic {check} {name}");
        println!("group {check} {name}");
        let lines = data::lines(check, &CANNOT.map(|(what, _)| what))?;
        Ok(Case { name, lines })
    }

    /// Does what is to be seen of each check.
    fn good(&self, producer: &Transactional) -> Done {
        producer.producer.begin_transaction()?;
        producer.produce(&self.name, &self.lines)?;
        producer.offsets(&self.name, &[(1, 4), (2, 7)])?;
        producer.commit()
    }

    /// Begins what is not to be seen.
    fn never(&self, producer: &Transactional) -> Done {
        producer.producer.begin_transaction()?;
        producer.produce(&self.name, &[value("never")])?;
        producer.offsets(&self.name, &[(0, 9)])
    }
}

struct Transactional {
    producer: BaseProducer<Log>,
    log: Log,
}

impl Transactional {
    /// Makes a producer, which fences those of the same id.
    fn open(id: &str) -> Result<Self, Failure> {
        let log = Log::default();
        let producer: BaseProducer<Log> = kafka::config(&token("ACME")?)?
            .set("transactional.id", id)
            .create_with_context(log.clone())?;
        producer.init_transactions(DEADLINE)?;
        Ok(Transactional { producer, log })
    }

    fn produce(&self, topic: &str, records: &[Record]) -> Done {
        kafka::send(&self.producer, &self.log, topic, records)
    }

    /// Only a consumer of the group has its metadata; nobody joins the group by it.
    fn offsets(&self, group: &str, offsets: &[(i32, i64)]) -> Done {
        let consumer = kafka::consumer(&token("ACME")?, &Log::default(), group)?;
        let metadata = consumer
            .group_metadata()
            .ok_or("a consumer without a group")?;
        let mut list = TopicPartitionList::new();
        for &(partition, at) in offsets {
            list.add_partition_offset(&var("COMPAT_GROUP_TOPIC")?, partition, Offset::Offset(at))?;
        }
        Ok(self
            .producer
            .send_offsets_to_transaction(&list, &metadata, DEADLINE)?)
    }

    fn commit(&self) -> Done {
        Ok(self.producer.commit_transaction(DEADLINE)?)
    }
}
