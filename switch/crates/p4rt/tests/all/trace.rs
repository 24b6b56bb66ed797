// SPDX-License-Identifier: Apache-2.0
//! `fairlane.v1.Switch` over a real server, and the role that only reads.

use crate::common::*;
use p4rt::proto::own::switch_client::SwitchClient;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::stream_message_request::Update as Outgoing;
use p4rt::proto::p4rt::stream_message_response::Update as Incoming;
use p4rt::proto::p4rt::PacketOut;
use p4rt::OBSERVER_ROLE;
use prost_types::value::Kind as ValueKind;
use prost_types::{Struct, Value};
use tonic::{Code, Status};

fn text(value: &str) -> ValueKind {
    ValueKind::StringValue(value.to_owned())
}

fn message(fields: &[(&str, ValueKind)]) -> Struct {
    let field = |(key, kind): &(&str, ValueKind)| {
        let kind = Some(kind.clone());
        ((*key).to_owned(), Value { kind })
    };
    Struct {
        fields: fields.iter().map(field).collect(),
    }
}

fn inner<'a>(message: &'a Struct, key: &str) -> &'a Value {
    message
        .fields
        .get(key)
        .unwrap_or_else(|| panic!("no {key} in {message:?}"))
}

async fn trace(switch: &Switch, fields: &[(&str, ValueKind)]) -> Result<Struct, Status> {
    let mut client = SwitchClient::connect(format!("http://{}", switch.addr))
        .await
        .unwrap();
    let answer = soon("a trace", client.trace(message(fields))).await?;
    let whole = answer.into_inner();
    match &inner(&whole, "trace").kind {
        Some(ValueKind::StructValue(trace)) => Ok(trace.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_frame_is_traced_and_what_is_wrong_is_said() {
    let switch = Switch::start().await;
    let port = |n: f64| ("ingress_port", ValueKind::NumberValue(n));
    let frame = || ("frame", text(&"00".repeat(64)));
    let status = trace(&switch, &[port(1.0), frame()]).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let _primary = switch.primary().await;
    let shown = trace(&switch, &[port(1.0), frame()]).await.unwrap();
    assert_eq!(
        inner(&shown, "bytes").kind,
        Some(ValueKind::NumberValue(64.0))
    );
    let ValueKind::ListValue(rounds) = inner(&shown, "rounds").kind.clone().unwrap() else {
        panic!("{shown:?}")
    };
    assert_eq!(rounds.values.len(), 1);
    let fields = [port(1.0), frame()];
    let one = || trace(&switch, &fields);
    let (a, b, c) = tokio::join!(one(), one(), one());
    assert_eq!(inner(&a.unwrap(), "rounds"), inner(&shown, "rounds"));
    assert_eq!(inner(&b.unwrap(), "rounds"), inner(&c.unwrap(), "rounds"));
    assert!(switch.sent_nothing().await);
    for (fields, code, said) in [
        (
            vec![frame()],
            Code::InvalidArgument,
            "missing field `ingress_port`",
        ),
        (
            vec![port(1.0)],
            Code::InvalidArgument,
            "missing field `frame`",
        ),
        (
            vec![port(1.0), ("frame", text("0"))],
            Code::InvalidArgument,
            "frame: 1 to 9216 bytes as hexadecimal digits",
        ),
        (
            vec![port(1.5), frame()],
            Code::InvalidArgument,
            "ingress_port: invalid type: floating point `1.5`, expected u32",
        ),
        (
            vec![port(9.0), frame()],
            Code::NotFound,
            "there is no port 9; there are 1, 2, 3, 4",
        ),
        (
            vec![port(1.0), frame(), ("x", text(""))],
            Code::InvalidArgument,
            "unknown field `x`, expected `ingress_port` or `frame`",
        ),
    ] {
        let status = trace(&switch, &fields).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(said), "{}", status.message());
    }
}

#[tokio::test]
async fn one_live_trace_at_a_time_and_it_ends_with_its_client() {
    let switch = Switch::start().await;
    let _primary = switch.primary().await;
    let connect = || async {
        SwitchClient::connect(format!("http://{}", switch.addr))
            .await
            .unwrap()
    };
    let count = message(&[("count", ValueKind::NumberValue(2.0))]);
    let mut first = connect().await;
    let mut stream = first.trace_live(count.clone()).await.unwrap().into_inner();
    let status = connect().await.trace_live(count.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    switch.receive(2, vec![0; 64]).await;
    let shown = soon("a packet", stream.message()).await.unwrap().unwrap();
    assert!(shown.fields.contains_key("trace"));
    drop(stream);
    drop(first);
    soon("the end of the first", async {
        while connect().await.trace_live(count.clone()).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_observer_reads_and_is_nobodys_primary() {
    let switch = Switch::start().await;
    let mut primary = switch.primary().await;
    let mut observer = switch.session().await;
    observer.role = OBSERVER_ROLE.to_owned();
    observer.become_primary(1 << 40).await; // of its own role
    let read = observer
        .read(vec![Kind::TableEntry(Default::default())])
        .await;
    assert!(!read.unwrap().is_empty());
    let status = observer.write(vec![]).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(
        status.message().starts_with("Read-only"),
        "{}",
        status.message()
    );
    observer.send(Outgoing::Packet(PacketOut::default())).await;
    match observer.next().await.unwrap() {
        Incoming::Error(error) => assert_eq!(error.canonical_code, Code::PermissionDenied as i32),
        other => panic!("{other:?}"),
    }
    assert!(primary.write(vec![]).await.is_ok());
}
