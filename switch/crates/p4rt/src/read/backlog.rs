// SPDX-License-Identifier: Apache-2.0
//! What a client has asked for and not yet taken: encoded, and all clients' together bounded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::Status;

use crate::budget::{Budget, Share};
use crate::connections::Limits;
use crate::proto::p4rt::ReadResponse;

/// Bytes that every client may leave waiting, whatever the others do.
const LEAST_BYTES: usize = 128 << 10;
/// Bytes that wait for all clients.
const ALL_BYTES: usize = 256 << 20;
/// Reads that may be under way at a time.
pub const MAX_READS: usize = 256;
/// A client that takes nothing for so long is cut off.
const STALL: Duration = Duration::from_secs(10);

/// What all reads share: their places, and the bytes that wait for their clients.
#[derive(Debug)]
pub struct Room {
    all: Budget,
    /// Bytes that may wait for one client.
    of_one: AtomicUsize,
    places: Arc<Semaphore>,
    /// How long a client may take nothing, and a read waits for a place.
    stall: Duration,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            all: Budget::new(ALL_BYTES),
            of_one: AtomicUsize::new(Limits::default().unread_bytes),
            places: Arc::new(Semaphore::new(MAX_READS)),
            stall: STALL,
        }
    }
}

impl Room {
    pub fn set_unread_bytes(&self, bytes: usize) {
        self.of_one.store(bytes, Ordering::Relaxed);
    }

    /// A place for one more read; one whose client takes nothing has lost its own by then.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when all places stay taken.
    pub async fn place(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = timeout(2 * self.stall, self.places.clone().acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| {
            Status::resource_exhausted(format!(
                "{MAX_READS} reads are under way; try again when one of them is done"
            ))
        })
    }
}

/// The messages for one client.
pub struct Backlog {
    out: Sender<Result<ReadResponse, Status>>,
    waiting: VecDeque<Vec<u8>>,
    /// The bytes of what waits.
    share: Share,
    room: Arc<Room>,
}

impl Backlog {
    pub fn new(out: Sender<Result<ReadResponse, Status>>, room: Arc<Room>) -> Backlog {
        Backlog {
            out,
            waiting: VecDeque::new(),
            share: Share::new(&room.all),
            room,
        }
    }

    /// Takes a message; never waits.
    pub fn put(&mut self, response: ReadResponse) {
        let response = match self.waiting.is_empty() {
            false => response,
            true => match self.out.try_send(Ok(response)) {
                Err(TrySendError::Full(Ok(response))) => response,
                _ => return, // sent, or nobody is there any more
            },
        };
        let bytes = response.encode_to_vec();
        self.share.add(bytes.len());
        self.waiting.push_back(bytes);
    }

    /// No more should be put before it was emptied.
    pub fn is_full(&self) -> bool {
        let (own, all) = (self.share.own(), &self.room.all);
        self.out.is_closed()
            || own >= self.room.of_one.load(Ordering::Relaxed)
            || (own >= LEAST_BYTES && all.used() >= all.max)
    }

    /// Waits until the client has taken all of it.
    ///
    /// # Errors
    /// CANCELLED when the client has gone, ABORTED when it takes nothing for long.
    pub async fn empty(&mut self) -> Result<(), Status> {
        let stall = self.room.stall;
        while !self.waiting.is_empty() || self.out.is_closed() {
            let permit = timeout(stall, self.out.reserve()).await.map_err(|_| {
                Status::aborted(format!("the client did not read for {} s", stall.as_secs()))
            })?;
            let permit = permit.map_err(|_| Status::cancelled("the client has gone"))?;
            let bytes = self.waiting.pop_front().unwrap_or_default();
            self.share.give(bytes.len());
            let response = ReadResponse::decode(bytes.as_slice())
                .map_err(|e| Status::internal(format!("a message cannot be read back: {e}")))?;
            permit.send(Ok(response));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn a_read_whose_client_takes_nothing_gives_way_to_another_one() {
        let room = Arc::new(Room {
            places: Arc::new(Semaphore::new(1)),
            stall: Duration::from_millis(20),
            ..Room::default()
        });
        let (out, _stream) = mpsc::channel(1);
        let mut backlog = Backlog::new(out, room.clone());
        let place = room.place().await.unwrap();
        let response = || ReadResponse {
            entities: vec![Default::default(); 10],
        };
        (0..3).for_each(|_| backlog.put(response()));
        let waits = tokio::spawn(async move {
            let status = backlog.empty().await.unwrap_err();
            drop((backlog, place));
            status
        });
        // The second one waits until the first gives way.
        let second = room.place().await.unwrap();
        let status = waits.await.unwrap();
        assert_eq!(status.code(), tonic::Code::Aborted);
        assert_eq!(room.all.used(), 0);
        drop(second);
        drop(room.place().await.unwrap());
    }

    #[tokio::test]
    async fn a_read_finds_no_place_while_the_others_get_on_with_it() {
        let room = Room {
            places: Arc::new(Semaphore::new(1)),
            stall: Duration::from_millis(20),
            ..Room::default()
        };
        let first = room.place().await.unwrap();
        let status = room.place().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        drop(first);
        drop(room.place().await.unwrap());
    }

    #[tokio::test]
    async fn what_waits_is_kept_in_order_and_counted() {
        let room = Arc::new(Room::default());
        room.set_unread_bytes(1_000);
        let (out, mut stream) = mpsc::channel(1);
        let mut backlog = Backlog::new(out, room.clone());
        let response = |n: usize| ReadResponse {
            entities: vec![Default::default(); n],
        };
        (1..=30).for_each(|n| backlog.put(response(n)));
        assert!(!backlog.is_full());
        (31..=40).for_each(|n| backlog.put(response(n)));
        assert!(backlog.is_full());
        let empty = tokio::spawn(async move { backlog.empty().await });
        for n in 1..=40 {
            assert_eq!(stream.recv().await.unwrap().unwrap(), response(n));
        }
        empty.await.unwrap().unwrap();
        assert_eq!(room.all.used(), 0);
    }
}
