//! The forms of dataset.tsv, and the lines of it that a check writes.

use std::env;
use std::fs;

use crate::Failure;

/// A record on its way in or out. No time leaves the time to the client.
#[derive(Clone, Default)]
pub struct Record {
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub time: Option<i64>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// The records of a check, in order, without those whose ids are in `without`.
pub fn lines(check: &str, without: &[&str]) -> Result<Vec<Record>, Failure> {
    let text = fs::read_to_string(env::var("COMPAT_DATASET")?)?;
    let mut records = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [of, id, key, value, time, headers] = fields[..] else {
            return Err(format!("not a line of the data set: {line}").into());
        };
        if of == check && !without.contains(&id) {
            records.push(record(key, value, time, headers)?);
        }
    }
    Ok(records)
}

fn record(key: &str, value: &str, time: &str, headers: &str) -> Result<Record, Failure> {
    let mut record = Record {
        key: bytes(key)?,
        value: bytes(value)?,
        ..Record::default()
    };
    if time != "now" {
        record.time = Some(time.parse()?);
    }
    if headers != "none" {
        for header in headers.split(',') {
            let (name, value) = header.split_once('=').ok_or("a header without =")?;
            record.headers.push((
                String::from_utf8(bytes(name)?.unwrap_or_default())?,
                bytes(value)?,
            ));
        }
    }
    Ok(record)
}

fn bytes(form: &str) -> Result<Option<Vec<u8>>, Failure> {
    if form == "null" {
        return Ok(None);
    }
    if let Some(digits) = form.strip_prefix('x') {
        let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16);
        return Ok(Some(
            (0..digits.len())
                .step_by(2)
                .map(byte)
                .collect::<Result<_, _>>()?,
        ));
    }
    let size: usize = form
        .strip_prefix('r')
        .ok_or("not a form of the data set")?
        .parse()?;
    Ok(Some((0..size).map(|i| b'a' + (i % 26) as u8).collect()))
}

/// A record that was read, as a line of the report shows it.
pub fn fields(record: &Record) -> String {
    let headers: Vec<String> = record
        .headers
        .iter()
        .map(|(name, value)| format!("{}={}", form(Some(name.as_bytes())), form(value.as_deref())))
        .collect();
    let headers = if headers.is_empty() {
        "none".to_string()
    } else {
        headers.join(",")
    };
    let time = record.time.map_or("?".to_string(), |t| t.to_string());
    format!(
        "{} {} {} {time} {headers}",
        record.offset,
        form(record.key.as_deref()),
        form(record.value.as_deref())
    )
}

fn form(value: Option<&[u8]>) -> String {
    match value {
        None => "null".to_string(),
        Some(bytes) => bytes
            .iter()
            .fold("x".to_string(), |text, b| text + &format!("{b:02x}")),
    }
}
