// SPDX-License-Identifier: Apache-2.0
//! Setting and getting forwarding pipeline configs: every action, every error (P4Runtime 1.5 §14, §15).

use crate::common::*;
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::get_forwarding_pipeline_config_request::ResponseType;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{
    packet_replication_engine_entry::Type as PreType, ForwardingPipelineConfig,
    GetForwardingPipelineConfigRequest, MulticastGroupEntry, PacketReplicationEngineEntry,
};
use tonic::Code;

async fn get(session: &mut Session, kind: ResponseType) -> Option<ForwardingPipelineConfig> {
    let request = GetForwardingPipelineConfigRequest {
        device_id: DEVICE_ID,
        response_type: kind as i32,
    };
    session
        .client
        .get_forwarding_pipeline_config(request)
        .await
        .unwrap()
        .into_inner()
        .config
}

#[tokio::test]
async fn before_a_config_calls_say_so() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.become_primary(1).await;
    for status in [
        a.write(vec![]).await.unwrap_err(),
        a.read(vec![]).await.unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::FailedPrecondition);
        // finsy looks for this text.
        assert_eq!(
            status.message(),
            "No forwarding pipeline config set for this device"
        );
    }
    assert_eq!(get(&mut a, ResponseType::All).await, None);
}

#[tokio::test]
async fn only_the_primary_sets_a_config() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.election_id = 1;
    let status = a
        .configure(Action::VerifyAndCommit, Some(config()))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(
        status.message().starts_with("Not primary"),
        "{}",
        status.message()
    );
}

#[tokio::test]
async fn a_config_is_read_back_in_parts() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    assert_eq!(get(&mut a, ResponseType::All).await, Some(config()));
    let cookie = get(&mut a, ResponseType::CookieOnly).await.unwrap();
    assert_eq!(
        (cookie.cookie, cookie.p4info.is_none()),
        (config().cookie, true)
    );
    assert!(cookie.p4_device_config.is_empty());
    let info = get(&mut a, ResponseType::P4infoAndCookie).await.unwrap();
    assert!(
        info.p4info == config().p4info && info.p4_device_config.is_empty() && info.cookie.is_some()
    );
    let device = get(&mut a, ResponseType::DeviceConfigAndCookie)
        .await
        .unwrap();
    assert!(device.p4info.is_none() && device.p4_device_config == JSON && device.cookie.is_some());
}

#[tokio::test]
async fn verify_changes_nothing() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.become_primary(1).await;
    a.configure(Action::Verify, Some(config())).await.unwrap();
    assert_eq!(get(&mut a, ResponseType::All).await, None);
}

#[tokio::test]
async fn a_saved_config_takes_writes_and_runs_when_committed() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let dst = [2, 0, 0, 0, 0, 5];
    a.insert(Kind::TableEntry(ids.exact(&dst, 2)))
        .await
        .unwrap();
    a.configure(Action::VerifyAndSave, Some(config()))
        .await
        .unwrap();
    // Reads and writes refer to the saved config: it is empty, and what goes in there does not run yet.
    let all = Kind::TableEntry(ids_table(&ids));
    assert_eq!(a.read(vec![all.clone()]).await.unwrap(), []);
    a.insert(Kind::TableEntry(ids.exact(&dst, 3)))
        .await
        .unwrap();
    switch.receive(1, frame(dst, 0x800, b"")).await;
    assert_eq!(switch.sent().await.0, 2);
    a.configure(Action::Commit, None).await.unwrap();
    assert_eq!(a.read(vec![all]).await.unwrap().len(), 1);
    switch.receive(1, frame(dst, 0x800, b"")).await;
    assert_eq!(switch.sent().await.0, 3);
    let status = a.configure(Action::Commit, None).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(
        status.message(),
        "no config is saved: VERIFY_AND_SAVE must come before COMMIT"
    );
}

fn ids_table(ids: &Ids) -> p4rt::proto::p4rt::TableEntry {
    p4rt::proto::p4rt::TableEntry {
        table_id: ids.tables("exact_table"),
        ..Default::default()
    }
}

#[tokio::test]
async fn commit_clears_and_reconcile_keeps() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let mut entry = ids.exact(&[2, 0, 0, 0, 0, 5], 2);
    entry.metadata = b"mine".as_slice().into();
    a.insert(Kind::TableEntry(entry.clone())).await.unwrap();
    let group = MulticastGroupEntry {
        multicast_group_id: 5,
        ..Default::default()
    };
    let group = Kind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(PreType::MulticastGroupEntry(group)),
    });
    a.insert(group.clone()).await.unwrap();
    a.configure(Action::ReconcileAndCommit, Some(config()))
        .await
        .unwrap();
    let read = a
        .read(vec![Kind::TableEntry(ids_table(&ids)), group.clone()])
        .await
        .unwrap();
    assert_eq!(read, [Kind::TableEntry(entry), group.clone()]);
    switch
        .receive(1, frame([2, 0, 0, 0, 0, 5], 0x800, b""))
        .await;
    assert_eq!(switch.sent().await.0, 2);
    a.configure(Action::VerifyAndCommit, Some(config()))
        .await
        .unwrap();
    let all = vec![Kind::TableEntry(ids_table(&ids)), group.clone()];
    assert_eq!(a.read(all).await.unwrap(), []);
    let handle = &switch.handle;
    let cleared = handle.call(|device, _| device.replication().group(5).is_none());
    assert!(cleared.await.unwrap());
    a.insert(group).await.unwrap();
}

/// What is wrong with a config, and the text that says so.
#[tokio::test]
async fn bad_configs_are_refused_with_the_reason() {
    let switch = Switch::start().await;
    let mut a = switch.primary().await;
    let with = |change: &dyn Fn(&mut ForwardingPipelineConfig)| {
        let mut config = config();
        change(&mut config);
        Some(config)
    };
    let cases = [
        (with(&|c| c.p4info = None), "the config has no p4info"),
        (with(&|c| c.p4_device_config.clear()), "the config has no p4_device_config; it takes the BMv2 JSON that p4c makes"),
        (with(&|c| c.p4_device_config = b"{ not json".as_slice().into()), "p4_device_config: "),
        (
            with(&|c| c.p4info.as_mut().unwrap().tables[0].preamble.as_mut().unwrap().name = "I.other".into()),
            "P4Info has the table I.other, the device config does not (it has: EntitiesIngress.exact_table",
        ),
        (
            with(&|c| c.p4info.as_mut().unwrap().tables[0].match_fields[0].bitwidth = 32),
            "table EntitiesIngress.exact_table: match field hdr.ethernet.dst_addr: width: 32 in P4Info, 48 in the device config",
        ),
        (
            with(&|c| c.p4info.as_mut().unwrap().registers[0].size = 9),
            "register EntitiesIngress.cells: cells: 9 in P4Info, 5000 in the device config",
        ),
        (
            with(&|c| {
                let info = c.p4info.as_mut().unwrap();
                let id = info.tables[0].preamble.as_ref().unwrap().id;
                info.tables[1].preamble.as_mut().unwrap().id = id;
            }),
            "P4Info: table EntitiesIngress.exact_table and table EntitiesIngress.lpm_table have the same id",
        ),
        (
            with(&|c| c.p4info.as_mut().unwrap().type_info = None),
            "digest learn_t: P4Info does not define the type learn_t",
        ),
        (None, "action VERIFY_AND_COMMIT needs a config"),
    ];
    for (bad, text) in cases {
        let status = a.configure(Action::VerifyAndCommit, bad).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{text}");
        assert!(
            status.message().starts_with(text),
            "{} is not {text}",
            status.message()
        );
    }
    let status = a
        .configure(Action::Commit, Some(config()))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(
        status.message(),
        "action COMMIT takes no config: it realizes the saved one"
    );
    let status = a
        .configure(Action::Unspecified, Some(config()))
        .await
        .unwrap_err();
    assert!(
        status.message().starts_with("action UNSPECIFIED is none"),
        "{}",
        status.message()
    );
    // The good config is still in force.
    assert_eq!(get(&mut a, ResponseType::All).await, Some(config()));
}

/// p4c drops what no packet can reach from the JSON, but not from P4Info.
#[tokio::test]
async fn what_the_compiler_left_out_can_be_named_but_not_used() {
    let switch = Switch::start().await;
    let mut a = switch.session().await;
    a.become_primary(1).await;
    let mut config = config();
    let info = config.p4info.as_mut().unwrap();
    let mut table = info.tables[1].clone();
    let preamble = table.preamble.as_mut().unwrap();
    (preamble.id, preamble.name) = (0x0200_0009, "I.unreachable".into());
    info.tables.push(table);
    a.configure(Action::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    let entry = p4rt::proto::p4rt::TableEntry {
        table_id: 0x0200_0009,
        ..Default::default()
    };
    let (code, text) = a.insert(Kind::TableEntry(entry)).await.unwrap_err();
    assert_eq!(code, Code::NotFound);
    assert_eq!(
        text,
        "table I.unreachable was left out by the compiler: no packet can reach it"
    );
}

/// What `p4src` holds is what the switch is made for.
#[tokio::test]
async fn the_programs_of_this_repository_load() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../p4src/compiled");
    let mut loaded = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let info = path.with_extension("p4info.txtpb");
        if path.extension().is_none_or(|e| e != "json") || !info.exists() {
            continue;
        }
        let switch = Switch::start().await;
        let mut a = switch.session().await;
        a.become_primary(1).await;
        let info = p4rt::proto::p4info_from_text(&std::fs::read_to_string(info).unwrap()).unwrap();
        let config = ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: std::fs::read(&path).unwrap().into(),
            cookie: None,
        };
        if let Err(status) = a.configure(Action::VerifyAndCommit, Some(config)).await {
            panic!("{}: {status}", path.display());
        }
        loaded += 1;
    }
    assert!(loaded > 0, "{} holds no compiled program", folder.display());
}
