// SPDX-License-Identifier: Apache-2.0
//! What once took gigabytes is refused, and takes little; `inputs` has the documents of the target `wire`.

use fuzz::memory::Counting;
use fuzz::targets::wire::{sender, TestServer, LONG, WRITE};
use tonic::Code;

#[global_allocator]
static MEMORY: Counting = Counting;

const SET_CONFIG: &str = "/p4.v1.P4Runtime/SetForwardingPipelineConfig";

/// A message within a message.
fn within(tag: u8, inner: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    prost::encoding::encode_varint(inner.len() as u64, &mut message);
    message.extend_from_slice(inner);
    message
}

#[test]
fn what_would_take_gigabytes_is_refused_before_it_is_decoded() {
    let server = TestServer::start();
    let code = |path, message: Vec<u8>| {
        let status = server.call(path, message.into(), LONG).unwrap();
        status.map_or(Code::Ok, |status| status.code())
    };
    // 31 million empty tables: config = 5, p4info = 1, tables = 2.
    let tables = within(0x2a, &within(0x0a, &[0x12, 0].repeat(31 << 20)));
    let nobody = [0x08, 1, 0x1a, 2, 0x10, 9];
    let of_nobody = [&nobody[..], &tables].concat();
    assert_eq!(code(SET_CONFIG, of_nobody), Code::PermissionDenied);
    assert_eq!(
        code(SET_CONFIG, [sender(), tables].concat()),
        Code::ResourceExhausted
    );
    // 8 million empty updates: updates = 4.
    let updates = [0x22, 0].repeat((15 << 20) / 2);
    let of_nobody = [&nobody[..], &updates].concat();
    assert_eq!(code(WRITE, of_nobody), Code::PermissionDenied);
    assert_eq!(
        code(WRITE, [sender(), updates].concat()),
        Code::ResourceExhausted
    );
    // 1,000 times everything, in PROTO: path = 2, encoding = 5.
    let paths = [[0x12, 0].repeat(1_000), vec![0x28, 2]].concat();
    assert_eq!(code("/gnmi.gNMI/Get", paths), Code::ResourceExhausted);
}
