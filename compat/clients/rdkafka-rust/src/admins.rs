//! The checks of administration.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::kafka::{self, Log};
use crate::{Done, Failure, named, one, one_line, token, var};

const DEADLINE: Duration = Duration::from_secs(10);

pub fn checks() {
    one("admin-topics", topics);
    one("admin-configs", configs);
    one("admin-groups", groups);
}

fn topics(check: &str) -> Done {
    let admin = Admin::log_in()?;
    let topic = topic(check)?;
    admin.create(&topic, 2, vec![("retention.ms", "3600000")])?;
    expect(&2, &partitions(&topic)?)?;
    taken(wait(admin.client.create_partitions(
        &[NewPartitions::new(&topic, 3)],
        &admin.options,
    ))?)?;
    expect(&3, &partitions(&topic)?)?;
    let gone = doomed(kafka::topics(&token("ACME")?)?)?;
    taken(wait(admin.client.delete_topics(&[&gone], &admin.options))?)?;
    println!("gone {check} {gone}");
    Ok(())
}

fn configs(check: &str) -> Done {
    let admin = Admin::log_in()?;
    let topic = topic(check)?;
    admin.create(&topic, 1, Vec::new())?;
    expect(
        &Some("-1"),
        &admin
            .configs(&topic)?
            .get("retention.ms")
            .map(String::as_str),
    )?;
    admin.set_config(&topic, "retention.ms", "7200000")?;
    let said = match admin.set_config(&topic, "message.timestamp.type", "LogAppendTime") {
        Ok(()) => "alter_configs reports success".to_string(),
        Err(Failure::Error(refusal)) => one_line(&refusal.to_string()),
        Err(skip) => return Err(skip),
    };
    println!("said {check} {said}");
    for (name, value) in admin.configs(&topic)? {
        println!("config {check} {name} {value}");
    }
    Ok(())
}

/// The crate sets offsets by a consumer that assigns itself partitions.
fn groups(check: &str) -> Done {
    let admin = Admin::log_in()?;
    let (group, topic) = (named(check)?, var("COMPAT_GROUP_TOPIC")?);
    println!("group {check} {group}");
    let consumer = kafka::consumer(&token("ACME")?, &Log::default(), &group)?;
    for offsets in [&[(0, 1), (1, 2), (2, 3)][..], &[(0, 5)][..]] {
        let mut list = TopicPartitionList::new();
        for &(partition, at) in offsets {
            list.add_partition_offset(&topic, partition, Offset::Offset(at))?;
        }
        consumer.commit(&list, CommitMode::Sync)?;
    }
    let mut asked = TopicPartitionList::new();
    asked.add_partition_range(&topic, 0, 3);
    let committed = consumer.committed_offsets(asked, DEADLINE)?;
    let got: BTreeMap<i32, Offset> = committed
        .elements()
        .iter()
        .map(|e| (e.partition(), e.offset()))
        .collect();
    let want = [
        (0, Offset::Offset(5)),
        (1, Offset::Offset(2)),
        (2, Offset::Offset(3)),
        (3, Offset::Invalid),
    ];
    expect(&BTreeMap::from(want), &got)?;
    let listed = consumer.client().fetch_group_list(None, DEADLINE)?;
    let gone = doomed(
        listed
            .groups()
            .iter()
            .map(|g| g.name().to_string())
            .collect(),
    )?;
    taken(wait(admin.client.delete_groups(&[&gone], &admin.options))?)?;
    println!("gone {check} {gone}");
    Ok(())
}

struct Admin {
    client: AdminClient<Log>,
    options: AdminOptions,
}

impl Admin {
    fn log_in() -> Result<Self, Failure> {
        let client = kafka::config(&token("ACME")?)?.create_with_context(Log::default())?;
        let options = AdminOptions::new().request_timeout(Some(DEADLINE));
        Ok(Admin { client, options })
    }

    fn create(&self, topic: &str, partitions: i32, config: Vec<(&str, &str)>) -> Done {
        let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
        new.config = config;
        taken(wait(self.client.create_topics(&[new], &self.options))?)
    }

    fn configs(&self, topic: &str) -> Result<HashMap<String, String>, Failure> {
        let mut out = HashMap::new();
        for result in wait(
            self.client
                .describe_configs(&[ResourceSpecifier::Topic(topic)], &self.options),
        )? {
            for entry in result?.entries {
                out.insert(entry.name, entry.value.unwrap_or_default());
            }
        }
        Ok(out)
    }

    /// AlterConfigs: what is not named goes back to its default. The crate reports success whatever
    /// became of a topic; what is described afterwards shows it.
    fn set_config(&self, topic: &str, name: &str, value: &str) -> Done {
        let config = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(name, value);
        for result in wait(self.client.alter_configs(&[config], &self.options))? {
            result.map_err(|(of, code)| format!("{of:?}: {code}"))?;
        }
        Ok(())
    }
}

fn partitions(topic: &str) -> Result<usize, Failure> {
    let consumer = kafka::consumer(&token("ACME")?, &Log::default(), "none")?;
    let metadata = consumer.fetch_metadata(Some(topic), DEADLINE)?;
    Ok(metadata.topics()[0].partitions().len())
}

fn topic(check: &str) -> Result<String, Failure> {
    let topic = named(check)?;
    println!("topic {check} {topic}");
    Ok(topic)
}

/// One of the things that are there to be deleted. Their names are not told: they are to be listed.
fn doomed(listed: Vec<String>) -> Result<String, Failure> {
    let prefix = var("COMPAT_DOOMED")?;
    let found = listed.into_iter().find(|name| name.starts_with(&prefix));
    found.ok_or_else(|| format!("nothing begins with {prefix}").into())
}

fn taken(results: Vec<Result<String, (String, rdkafka::types::RDKafkaErrorCode)>>) -> Done {
    for result in results {
        result.map_err(|(name, code)| format!("{name}: {code}"))?;
    }
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Debug>(want: &T, got: &T) -> Done {
    if want != got {
        return Err(format!("want {want:?}, got {got:?}").into());
    }
    Ok(())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future of the administration, whose timeout ends it.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}
