//! The events of one append as one row: a version, a count, then each event with its lengths in front, then a checksum.
//!
//! Not JSON: the data are bytes already, and would have to be escaped. Not a row per event: a step would cost twice
//! the row operations. What was written by any version stays readable; a golden test keeps it so.

use crate::Event;

const LAYOUT: u8 = 1;

pub(crate) fn encode(events: &[Event]) -> Vec<u8> {
    let size: usize = events.iter().map(|it| it.data.len() + it.kind.len() + it.actor.len() + 64).sum();
    let mut out = Vec::with_capacity(size + 16);
    out.push(LAYOUT);
    number(&mut out, events.len() as u64);
    for event in events {
        bytes(&mut out, event.kind.as_bytes());
        number(&mut out, u64::from(event.version));
        out.extend_from_slice(&event.time.to_le_bytes());
        bytes(&mut out, event.actor.as_bytes());
        bytes(&mut out, event.correlation.as_bytes());
        match &event.caused_by {
            None => out.push(0),
            Some(cause) => {
                out.push(1);
                bytes(&mut out, cause.as_bytes());
            }
        }
        bytes(&mut out, &event.data);
    }
    let sum = crc32fast::hash(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The bytes as events, or what is wrong with them.
pub(crate) fn decode(stored: &[u8]) -> Result<Vec<Event>, String> {
    let (body, sum) = stored.split_last_chunk::<4>().ok_or("events cut short")?;
    if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
        return Err("events with a wrong checksum".to_owned());
    }
    let mut rest = EventDecoder(body);
    match rest.byte()? {
        LAYOUT => {}
        other => return Err(format!("events in layout {other}, which this program does not know")),
    }
    let count = rest.number()?;
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(Event {
            kind: rest.text()?,
            version: u16::try_from(rest.number()?).map_err(|_| "an event version that is too large")?,
            time: rest.time()?,
            actor: rest.text()?,
            correlation: rest.text()?,
            caused_by: if rest.byte()? == 0 { None } else { Some(rest.text()?) },
            data: rest.bytes()?.to_vec(),
        });
    }
    if rest.0.is_empty() { Ok(events) } else { Err("events with something behind them".to_owned()) }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    number(out, value.len() as u64);
    out.extend_from_slice(value);
}

struct EventDecoder<'a>(&'a [u8]);

impl<'a> EventDecoder<'a> {
    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.0.split_first().ok_or("an event cut short")?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number that is too long".to_owned())
    }

    fn time(&mut self) -> Result<i64, String> {
        let (first, rest) = self.0.split_first_chunk::<8>().ok_or("an event cut short")?;
        self.0 = rest;
        Ok(i64::from_le_bytes(*first))
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = usize::try_from(self.number()?).map_err(|_| "a length that is too large")?;
        let (first, rest) = self.0.split_at_checked(length).ok_or("an event cut short")?;
        self.0 = rest;
        Ok(first)
    }

    fn text(&mut self) -> Result<String, String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| "a text that is not UTF-8".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Event> {
        let first = Event {
            kind: "started".to_owned(),
            version: 300,
            time: -5,
            actor: "wörker".to_owned(),
            correlation: String::new(),
            caused_by: None,
            data: vec![0, 255, 10],
        };
        let second = Event { caused_by: Some("cmd-1".to_owned()), data: vec![7; 200], ..first.clone() };
        vec![first, second]
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(decode(&encode(&sample())), Ok(sample()));
        assert_eq!(decode(&encode(&[])), Ok(Vec::new()));
    }

    /// Written by the first version; must be readable for ever.
    #[test]
    fn layout_1_stays_readable() {
        let golden =
            b"\x01\x01\x07started\xac\x02\xfb\xff\xff\xff\xff\xff\xff\xff\x07w\xc3\xb6rker\0\0\x03\x00\xff\x0a";
        let mut stored = golden.to_vec();
        stored.extend_from_slice(&crc32fast::hash(golden).to_le_bytes());
        assert_eq!(decode(&stored), Ok(sample()[..1].to_vec()));
        assert_eq!(encode(&sample()[..1]), stored);
    }

    #[test]
    fn no_damage_goes_unnoticed() {
        let stored = encode(&sample());
        for at in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at}");
            assert!(decode(&stored[..at]).is_err(), "cut at {at}");
        }
    }
}
