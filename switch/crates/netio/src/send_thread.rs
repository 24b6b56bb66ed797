// SPDX-License-Identifier: Apache-2.0
//! A thread that only sends: batches of frames go to it and come back, so that nothing is allocated on the way.

use std::io;
use std::sync::mpsc::{sync_channel, Receiver, SendError, SyncSender};
use std::thread::JoinHandle;

use crate::clock::monotonic_now;
use crate::socket::TxSocket;
use crate::thread;
use crate::thread::Rest;
use crate::tx_batch::Batch;

/// Batches that may be with the thread; who has more to send waits, and the rings of the interfaces fill.
const BATCHES: usize = 16;

/// A sending thread, from its caller's side. It ends when this is dropped.
pub(crate) struct SendThread {
    /// None when it was ended.
    full: Option<SyncSender<Batch>>,
    sent: Receiver<Batch>,
    /// Batches that are with the thread.
    away: usize,
    empty: Vec<Batch>,
    thread: Option<JoinHandle<()>>,
}

impl SendThread {
    /// Starts one, with real-time scheduling where the thread that calls has it.
    pub(crate) fn start(mut socket: TxSocket) -> io::Result<SendThread> {
        let (full, to_send) = sync_channel::<Batch>(BATCHES);
        let (back, sent) = sync_channel(BATCHES);
        let is_realtime = thread::is_realtime();
        let builder = std::thread::Builder::new().name("sending".to_owned());
        let thread = builder.spawn(move || {
            thread::run_elsewhere();
            if is_realtime {
                // Where it is refused now, the thread is an ordinary one.
                let _ = thread::schedule_realtime();
            }
            let mut rest = Rest::for_this_thread();
            loop {
                let next = rest.during(monotonic_now(), || to_send.recv());
                let Ok(mut batch) = next else { return };
                batch.send(Some(&mut socket));
                rest.take(monotonic_now());
                if back.send(batch).is_err() {
                    return;
                }
            }
        })?;
        Ok(SendThread {
            full: Some(full),
            sent,
            away: 0,
            empty: (0..BATCHES).map(|_| Batch::new()).collect(),
            thread: Some(thread),
        })
    }

    /// Hands `batch` to the thread and puts an empty one in its place; `each` gets those that were sent, with what failed in
    /// them.
    #[inline]
    pub(crate) fn exchange(&mut self, batch: &mut Batch, mut each: impl FnMut(&mut Batch)) {
        while let Ok(sent) = self.sent.try_recv() {
            self.take_back(sent, &mut each);
        }
        if self.empty.is_empty() {
            self.wait(&mut each);
        }
        if let (Some(full), Some(empty)) = (&self.full, self.empty.pop()) {
            match full.send(std::mem::replace(batch, empty)) {
                Ok(()) => {
                    self.away += 1;
                    return;
                }
                Err(SendError(unsent)) => self.empty.push(std::mem::replace(batch, unsent)),
            }
        }
        // There is no thread any more.
        batch.send(None);
        each(batch);
    }

    /// Waits until all is sent.
    pub(crate) fn settle(&mut self, mut each: impl FnMut(&mut Batch)) {
        while self.away > 0 {
            self.wait(&mut each);
        }
    }

    /// Waits for one batch.
    fn wait(&mut self, each: &mut impl FnMut(&mut Batch)) {
        match self.sent.recv() {
            Ok(sent) => self.take_back(sent, each),
            Err(_) => self.away = 0,
        }
    }

    fn take_back(&mut self, mut sent: Batch, each: &mut impl FnMut(&mut Batch)) {
        each(&mut sent);
        self.empty.push(sent);
        self.away -= 1;
    }
}

impl Drop for SendThread {
    fn drop(&mut self) {
        self.full = None;
        self.settle(|_| {});
        if let Some(thread) = self.thread.take() {
            // A panic ends the process before it comes here, where that is wanted.
            let _ = thread.join();
        }
    }
}
