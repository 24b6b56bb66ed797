// SPDX-License-Identifier: Apache-2.0
//! Time travel as Linux defines it in `include/uapi/linux/um_timetravel.h`: messages, and the memory of shared-memory scheduling.
//!
//! We are client 0, but the guest never sees anybody else's turn: its requests come through memory, never as messages, and it runs
//! only between RUN and WAIT. Behind the clients lie the frames (`frames`).

use crate::error::{system, MachineError};
use crate::memory::Memory;
use crate::Nanos;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    recv, send, sendmsg, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Later than any event; the kernel takes a sleep until then for one without an end.
pub(crate) const NEVER: Nanos = i64::MAX as Nanos;

/// So long `serve` waits for a message: longer than most turns take.
const TURN: Duration = Duration::from_millis(20);

const MESSAGE_BYTES: usize = 16;
mod op {
    pub(super) const ACK: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const WAIT: u32 = 3;
    pub(super) const GET: u32 = 4;
    pub(super) const RUN: u32 = 6;
    pub(super) const GET_TIME_OF_DAY: u32 = 8;
}

/// Offsets in the shared memory.
mod field {
    pub(super) const VERSION: usize = 0;
    pub(super) const LEN: usize = 4;
    pub(super) const FREE_UNTIL: usize = 8;
    pub(super) const CURRENT_TIME: usize = 16;
    pub(super) const RUNNING_ID: usize = 24;
    pub(super) const MAX_CLIENTS: usize = 26;
    pub(super) const CLIENTS: usize = 4096;
    pub(super) const CLIENT_BYTES: usize = 128;
    // Of a client.
    pub(super) const FLAGS: usize = 4;
    pub(super) const REQUEST_TIME: usize = 8;
}
const SHARED_VERSION: u32 = 2;
const WANTS_TO_RUN: u32 = 1;
const GUEST: u16 = 1;
const GUEST_START: usize = field::CLIENTS + GUEST as usize * field::CLIENT_BYTES;
/// Where the memory is the frames'.
pub(crate) const CLIENTS_END: usize = field::CLIENTS + 2 * field::CLIENT_BYTES;

/// What a message from the guest asks of us.
pub(crate) enum Asked {
    /// Answered, or nothing has come yet.
    Nothing,
    /// It has nothing more to do before another instant.
    Waits,
    /// Its end is closed.
    Ended,
}

/// The calendar's end of the time socket, and the shared memory.
pub(crate) struct Calendar {
    pub(crate) socket: OwnedFd,
    pub(crate) file: OwnedFd,
    shared: Memory,
}

impl Calendar {
    /// For a guest that has just connected; it runs from instant 0 on. The memory has so many bytes more behind the clients.
    pub(crate) fn new(socket: OwnedFd, more_bytes: usize) -> Result<Calendar, MachineError> {
        set_socket_timeout(&socket, Timeout::Recv, Some(TURN))
            .map_err(system("setting up the time socket"))?;
        let file = memfd_create("fairlane-time", MemfdFlags::CLOEXEC)
            .map_err(system("memory for the calendar"))?;
        let len = CLIENTS_END + more_bytes;
        ftruncate(&file, len as u64).map_err(system("memory for the calendar"))?;
        let shared = Memory::map(&file, CLIENTS_END)?;
        shared.write(field::VERSION, &SHARED_VERSION.to_le_bytes())?;
        shared.write(field::LEN, &(len as u32).to_le_bytes())?;
        shared.write(field::FREE_UNTIL, &NEVER.to_le_bytes())?;
        shared.write(field::RUNNING_ID, &GUEST.to_le_bytes())?;
        shared.write(field::MAX_CLIENTS, &2u16.to_le_bytes())?;
        Ok(Calendar {
            socket,
            file,
            shared,
        })
    }

    /// The present, as the one whose turn it is wrote it.
    pub(crate) fn now(&self) -> Result<Nanos, MachineError> {
        self.shared.u64(field::CURRENT_TIME)
    }

    /// When the guest wants to run.
    pub(crate) fn wants(&self) -> Result<Option<Nanos>, MachineError> {
        let flags = self.shared.u32(GUEST_START + field::FLAGS)?;
        match flags & WANTS_TO_RUN {
            0 => Ok(None),
            _ => self.shared.u64(GUEST_START + field::REQUEST_TIME).map(Some),
        }
    }

    /// It is the guest's turn, from `now` on, before `free_until`.
    pub(crate) fn give_turn(&self, now: Nanos, free_until: Nanos) -> Result<(), MachineError> {
        self.shared.write(field::CURRENT_TIME, &now.to_le_bytes())?;
        self.limit(free_until)?;
        self.send(op::RUN, 0, now, &[])
    }

    /// The guest must stop before `instant`.
    pub(crate) fn limit(&self, instant: Nanos) -> Result<(), MachineError> {
        self.shared
            .publish(field::FREE_UNTIL, &instant.to_le_bytes())
    }

    /// What the last turn reached: all that is due before has been done.
    pub(crate) fn reached(&self) -> Result<Nanos, MachineError> {
        self.shared.u64(field::FREE_UNTIL)
    }

    /// Waits a moment for a message, and answers it.
    pub(crate) fn serve(&self) -> Result<Asked, MachineError> {
        let mut message = [0; MESSAGE_BYTES];
        let (len, _) = match recv(&self.socket, &mut message, RecvFlags::empty()) {
            Ok(done) => done,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(Asked::Nothing),
            Err(rustix::io::Errno::CONNRESET) => return Ok(Asked::Ended),
            Err(error) => return Err(system("reading from the kernel")(error)),
        };
        if len == 0 {
            return Ok(Asked::Ended);
        }
        let number = |at: usize| {
            u32::from_le_bytes([
                message[at],
                message[at + 1],
                message[at + 2],
                message[at + 3],
            ])
        };
        let (op, sequence) = (number(0), number(4));
        match op {
            _ if len != MESSAGE_BYTES => Err(MachineError::Protocol(format!(
                "a time-travel message of {len} bytes"
            ))),
            op::WAIT => Ok(Asked::Waits),
            op::START => {
                let log =
                    std::fs::File::create("/dev/null").map_err(system("opening /dev/null"))?;
                let files = [self.file.as_fd(), log.as_fd()];
                self.send(op::ACK, sequence, Nanos::from(GUEST), &files)?;
                Ok(Asked::Nothing)
            }
            op::GET | op::GET_TIME_OF_DAY => {
                // Its time of day begins with the epoch, the same in every run.
                let now = if op == op::GET { self.now()? } else { 0 };
                self.send(op::ACK, sequence, now, &[])?;
                Ok(Asked::Nothing)
            }
            _ => Err(MachineError::Protocol(format!(
                "time-travel message {op}, which shared memory makes needless"
            ))),
        }
    }

    fn send(
        &self,
        op: u32,
        sequence: u32,
        time: Nanos,
        files: &[rustix::fd::BorrowedFd<'_>],
    ) -> Result<(), MachineError> {
        let mut message = [0; MESSAGE_BYTES];
        message[0..4].copy_from_slice(&op.to_le_bytes());
        message[4..8].copy_from_slice(&sequence.to_le_bytes());
        message[8..16].copy_from_slice(&time.to_le_bytes());
        let (socket, flags) = (&self.socket, SendFlags::NOSIGNAL);
        let sent = if files.is_empty() {
            send(socket, &message, flags)
        } else {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(files));
            sendmsg(socket, &[IoSlice::new(&message)], &mut control, flags)
        };
        sent.map(drop).map_err(system("writing to the kernel"))
    }
}
