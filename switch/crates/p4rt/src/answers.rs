// SPDX-License-Identifier: Apache-2.0
//! Long answers in one message: what of them is on its way to clients, all together bounded.

use prost::Message;
use tonic::{Response, Status};

use crate::budget::{Budget, Share};
use crate::gate::UntilSent;

/// Bytes of answers on their way.
const BYTES: usize = 256 << 20;

/// The answers of one service.
pub struct Answers(Budget);

impl Default for Answers {
    fn default() -> Answers {
        Answers(Budget::new(BYTES))
    }
}

impl Answers {
    /// The answer as a response, which counts until its client has taken it, or has gone.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when there is no room.
    pub fn keep<T: Message>(&self, answer: T) -> Result<Response<T>, Status> {
        let share = Share::new(&self.0);
        if !share.take(answer.encoded_len().min(BYTES)) {
            return Err(Status::resource_exhausted(
                "too much that clients asked for is still on its way to them: ask for less, or again",
            ));
        }
        let mut response = Response::new(answer);
        response.extensions_mut().insert(UntilSent::new(share));
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::p4rt::PacketOut;

    #[test]
    fn what_is_on_its_way_is_bounded_and_given_back() {
        let answers = Answers::default();
        let long = || PacketOut {
            payload: vec![0; BYTES / 2 + 1].into(),
            ..PacketOut::default()
        };
        let first = answers.keep(long()).unwrap();
        let status = answers.keep(long()).unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        answers.keep(PacketOut::default()).unwrap();
        drop(first);
        answers.keep(long()).unwrap();
    }
}
