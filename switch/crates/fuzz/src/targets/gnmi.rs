// SPDX-License-Identifier: Apache-2.0
//! gNMI Gets and Sets to a switch with four ports: every answer is well-formed, a refused Set changes nothing, and in the end
//! everything can be read.

use std::future::{poll_fn, Future};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use device::{Calls, Device, DeviceHandle, PortConfig};
use gnmi::{Gnmi, Interface, LinkStatus, Links};
use netio::Ethernet;
use p4rt::proto::gnmi::g_nmi_server::GNmi;
use p4rt::proto::gnmi::{GetRequest, SetRequest};
use serde_json::{json, Value};
use tokio::sync::watch;
use tonic::{Code, Request, Status};

use super::messages::Messages;
use super::switch::{self, CPU_PORT, PORTS};
use super::{Outcome, Target};

/// Interfaces that are always up, and stay so.
pub struct Up;

impl Links for Up {
    fn status(&self, _interface: &str) -> LinkStatus {
        LinkStatus {
            admin_up: true,
            oper_up: true,
        }
    }

    fn ethernet(&self, _interface: &str) -> Ethernet {
        Ethernet::default()
    }

    fn set_up(&self, _interface: &str, _up: bool) -> io::Result<()> {
        Ok(())
    }
}

/// A path of its text: `interfaces/interface[name=p1]/config`.
fn path(text: &str) -> Value {
    let element = |part: &str| match part.split_once('[') {
        None => json!({"name": part}),
        Some((name, key)) => {
            let key = key.trim_end_matches(']').split_once('=');
            let (key, value) = key.expect("key=value");
            json!({"name": name, "key": {key: value}})
        }
    };
    let elements: Vec<Value> = text.split('/').map(element).collect();
    json!({"elem": elements})
}

/// Calls that reach every kind of leaf.
fn calls() -> Value {
    let port = "interfaces/interface[name=p1]";
    let scheduler =
        "qos/scheduler-policies/scheduler-policy[name=p1]/schedulers/scheduler[sequence=1]";
    let queues = "qos/interfaces/interface[interface-id=p1]/output/queues/queue[name=0]";
    let mut all = Vec::new();
    for text in [
        "interfaces",
        "qos",
        "fairlane-port:switch",
        port,
        scheduler,
        queues,
        "interfaces/interface[name=*]/state/counters",
        "interfaces/.../state",
        "interfaces/interface[name=p2]/fairlane-port:port/drops/drop[reason=*]/state/packets",
    ] {
        for encoding in ["JSON_IETF", "PROTO"] {
            all.push(json!({"get": {"path": [path(text)], "encoding": encoding}}));
        }
    }
    let own = format!("{port}/fairlane-port:port/config");
    let policy = format!("{scheduler}/one-rate-two-color/config");
    for (leaf, value) in [
        (format!("{port}/config/enabled"), json!(false)),
        (format!("{own}/scheduler"), json!("drr")),
        (format!("{own}/link-layer"), json!("atm")),
        (format!("{own}/queues"), json!(16)),
        (format!("{own}/port-packets"), json!("100")),
        (format!("{policy}/cir"), json!("1000000")),
        (format!("{policy}/max-queue-depth-packets"), json!(10)),
        (
            format!("{scheduler}/inputs/input[id=3]/config/weight"),
            json!("7"),
        ),
        (
            own.clone(),
            json!({"fairlane-port:scheduler": "wrr", "queues": 20}),
        ),
        (
            port.into(),
            json!({"config": {"name": "p1", "enabled": true}}),
        ),
    ] {
        let update = json!({"path": path(&leaf), "val": {"json_ietf_val": {"$json": value}}});
        all.push(json!({"set": {"update": [update]}}));
        all.push(json!({"set": {"replace": [update]}}));
        all.push(json!({"set": {"delete": [path(&leaf)]}}));
    }
    let queues = path(&format!("{own}/queues"));
    let typed = |value: Value| json!({"path": queues, "val": value});
    all.push(json!({"set": {"update": [typed(json!({"uint_val": "24"})), typed(json!({"string_val": "x"}))]}}));
    json!(all)
}

pub fn target() -> Target {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime of one thread");
    let messages = Messages::new();
    Target::new(vec![("calls".into(), calls())], move |document| {
        let calls = document.as_array().cloned().unwrap_or_default();
        runtime.block_on(run(&messages, &calls))
    })
}

/// The ports as a switch names them.
pub fn interfaces() -> Vec<Interface> {
    let named = |port| Interface {
        port,
        name: format!("p{port}"),
        cpu: false,
    };
    PORTS.map(named).collect()
}

async fn run(messages: &Messages, calls: &[Value]) -> Outcome {
    let (handle, mut work) = DeviceHandle::new(|| {});
    let mut device = switch::bed().device;
    let mut interfaces = interfaces();
    interfaces.push(Interface {
        port: CPU_PORT,
        name: "cpu".into(),
        cpu: true,
    });
    let (_changes_in, changes) = watch::channel(0);
    let gnmi = Gnmi::new(handle, Arc::new(Up), interfaces, changes);
    let gnmi = gnmi.map_err(|e| format!("gNMI does not start: {e}"))?;
    for call in calls.iter().take(200) {
        let Some((verb, json)) = call.as_object().and_then(|call| call.iter().next()) else {
            continue;
        };
        match verb.as_str() {
            "get" => {
                let request = messages.read::<GetRequest>("gnmi.GetRequest", json);
                let Some(request) = request else { continue };
                let answer = drive(gnmi.get(Request::new(request)), &mut device, &mut work).await;
                well_formed("Get", answer.map(drop))?;
            }
            "set" => {
                let request = messages.read::<SetRequest>("gnmi.SetRequest", json);
                let Some(request) = request else { continue };
                let before = ports(&device);
                let answer = drive(gnmi.set(Request::new(request)), &mut device, &mut work).await;
                if answer.is_err() && before != ports(&device) {
                    return Err(format!("a refused Set changed a port: {answer:?}"));
                }
                well_formed("Set", answer.map(drop))?;
            }
            _ => {}
        }
    }
    let all = json!({"path": [path("interfaces"), path("qos")], "encoding": "JSON_IETF"});
    let all: GetRequest = messages.read("gnmi.GetRequest", &all).expect("a request");
    let answer = drive(gnmi.get(Request::new(all)), &mut device, &mut work).await;
    answer
        .map(drop)
        .map_err(|e| format!("reading everything: {e}"))
}

fn ports(device: &Device) -> Vec<Option<PortConfig>> {
    PORTS.map(|port| device.port(port).copied()).collect()
}

/// Runs a call to its end; what it asks of the device is done between two polls.
async fn drive<T>(call: impl Future<Output = T>, device: &mut Device, work: &mut Calls) -> T {
    let mut call = pin!(call);
    poll_fn(|context| loop {
        if let Poll::Ready(done) = call.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if !work.run_one(device, |_| 1_000_000_000) {
            // Another task is at work for it.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
    })
    .await
}

fn well_formed(what: &str, answer: Result<(), Status>) -> Outcome {
    match answer {
        Err(status) if matches!(status.code(), Code::Internal | Code::Unknown | Code::Ok) => {
            Err(format!("{what}: {:?}: {}", status.code(), status.message()))
        }
        Err(status) if status.message().len() > 8192 => Err(format!(
            "{what}: a refusal of {} bytes",
            status.message().len()
        )),
        _ => Ok(()),
    }
}
