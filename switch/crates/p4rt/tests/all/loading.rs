// SPDX-License-Identifier: Apache-2.0
//! Configs that are refused: the program that runs goes on, nothing takes more memory than it may; and tables with entries
//! of the program's own that are not const; what RECONCILE cannot keep.

use crate::common::*;
use crate::entities::profiles::{group, member, one_shot, points_to};
use p4rt::proto::p4info::{
    action::Param, p4_data_type_spec::TypeSpec, P4DataTypeSpec, P4NamedType, P4StructTypeSpec,
    P4TypeInfo,
};
use p4rt::proto::p4rt::entity::Entity as Kind;
use p4rt::proto::p4rt::set_forwarding_pipeline_config_request::Action;
use p4rt::proto::p4rt::{ForwardingPipelineConfig, TableEntry, ValueSetEntry, ValueSetMember};
use tonic::Code;

/// A forwarding switch on which configs are tried.
struct Running {
    switch: Switch,
    primary: Session,
}

impl Running {
    async fn start() -> Running {
        let switch = Switch::start().await;
        let mut primary = switch.primary().await;
        let entry = Ids::default().exact(&[2, 0, 0, 0, 0, 5], 2);
        primary.insert(Kind::TableEntry(entry)).await.unwrap();
        Running { switch, primary }
    }

    /// Every action refuses the config with this text, and what ran before runs on.
    async fn refuses(&mut self, config: ForwardingPipelineConfig, text: &str) {
        for action in [
            Action::Verify,
            Action::VerifyAndSave,
            Action::VerifyAndCommit,
            Action::ReconcileAndCommit,
        ] {
            let answer = self.primary.configure(action, Some(config.clone())).await;
            let status = answer.expect_err(text);
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            assert!(status.message().contains(text), "{}", status.message());
            assert!(status.message().len() < 1000, "{}", status.message());
        }
        let packet = frame([2, 0, 0, 0, 0, 5], 0x800, b"");
        self.switch.receive(1, packet).await;
        assert_eq!(self.switch.sent().await.0, 2);
    }
}

#[tokio::test]
async fn a_malformed_program_leaves_the_old_one_running() {
    let mut running = Running::start().await;
    for json in ["null", "0", "[]", "{}", "\"x\"", "[[[["] {
        let config = ForwardingPipelineConfig {
            p4_device_config: json.as_bytes().to_vec().into(),
            p4info: Some(Default::default()),
            ..config()
        };
        running.refuses(config, "p4_device_config: /").await;
    }
    let twice = with_json(|json| {
        let states = json["parsers"][0]["parse_states"].as_array_mut().unwrap();
        states.push(states[0].clone());
    });
    let text = "/name: parser state start is declared a second time; the first is /parsers/0/parse_states/0/name";
    running.refuses(twice, text).await;
    let large = with_json(|json| json["counter_arrays"][1]["size"] = u32::MAX.into());
    let text = "/counter_arrays/1/size: counter array of 4294967295 cells would take 64.0 GiB";
    running.refuses(large, text).await;
}

#[tokio::test]
async fn numbers_of_p4info_that_are_none_are_refused() {
    let mut running = Running::start().await;
    for size in [-1, 65_537, i64::MAX] {
        let wrong = with_info(|info| {
            let name = "EntitiesIngress.exact_table";
            let table = info
                .tables
                .iter_mut()
                .find(|t| t.preamble.as_ref().unwrap().name == name);
            table.unwrap().size = size;
        });
        let text = format!(
            "table EntitiesIngress.exact_table: P4Info's size {size} is not within 0 to 65536"
        );
        running.refuses(wrong, &text).await;
    }
    let wrong = with_info(|info| info.action_profiles[0].size = -1);
    running
        .refuses(wrong, "P4Info's size -1 is not within 0 to")
        .await;
    let wrong = with_info(|info| info.action_profiles[0].max_group_size = -5);
    running
        .refuses(wrong, "max_group_size -5 is not within 0 to")
        .await;
    let wrong = with_info(|info| info.value_sets[0].size = -1);
    running
        .refuses(wrong, "P4Info's size -1 is not within 0 to")
        .await;
    let twice = with_info(|info| {
        let mut twin = info.counters[0].clone();
        twin.preamble.as_mut().unwrap().id += 1;
        info.counters.push(twin);
    });
    running
        .refuses(
            twice,
            "P4Info: there are two counters EntitiesIngress.port_counter",
        )
        .await;
    let twice = with_info(|info| {
        let action = info
            .actions
            .iter_mut()
            .find(|a| a.params.len() > 1)
            .unwrap();
        action.params[1].id = action.params[0].id;
    });
    running
        .refuses(twice, "parameters: id 1 is 0 or used twice")
        .await;
    let twice = with_info(|info| {
        let table = &mut info.tables[0];
        table.action_refs.push(table.action_refs[0].clone());
    });
    running.refuses(twice, "is 0 or used twice").await;
    let twice = with_info(|info| {
        let metadata = &mut info.controller_packet_metadata;
        metadata.push(metadata[0].clone());
    });
    running
        .refuses(
            twice,
            "controller packet metadata packet_in have the same id",
        )
        .await;
}

/// 16 structs, each of 10 members of the next: 10^16 values.
#[tokio::test]
async fn nested_types_of_p4info_have_a_budget() {
    let named = |i: usize| {
        TypeSpec::Struct(P4NamedType {
            name: format!("s{i}"),
        })
    };
    let nested = |last: usize| {
        let mut types = P4TypeInfo::default();
        for i in 0..=last {
            // The last one is the first again where there is a cycle, or empty.
            let next = if i == 16 { 0 } else { i + 1 };
            let member = p4rt::proto::p4info::p4_struct_type_spec::Member {
                name: "m".into(),
                type_spec: Some(P4DataTypeSpec {
                    type_spec: Some(named(next)),
                }),
            };
            let members = if i == last && i < 16 {
                vec![]
            } else {
                vec![member; 10]
            };
            types.structs.insert(
                format!("s{i}"),
                P4StructTypeSpec {
                    members,
                    ..Default::default()
                },
            );
        }
        types
    };
    let mut running = Running::start().await;
    let of = |types: P4TypeInfo| {
        with_info(|info| {
            info.digests[0].type_spec = Some(P4DataTypeSpec {
                type_spec: Some(named(0)),
            });
            info.type_info = Some(types);
        })
    };
    running
        .refuses(of(nested(15)), "have more than 1048576 parts")
        .await;
    running.refuses(of(nested(16)), "P4Info").await;
    running
        .refuses(of(nested(2)), "bits of the values: [] in P4Info")
        .await;
}

fn entry(ids: &Ids, ether_type: &[u8], priority: i32, action: &str) -> TableEntry {
    TableEntry {
        table_id: ids.tables("const_table"),
        r#match: vec![ternary(1, ether_type, &[0xff, 0xff])],
        priority,
        action: ids.action(action, &[]),
        ..Default::default()
    }
}

async fn entries(session: &mut Session, ids: &Ids) -> Vec<TableEntry> {
    let all = Kind::TableEntry(TableEntry {
        table_id: ids.tables("const_table"),
        ..Default::default()
    });
    let read = session.read(vec![all]).await.unwrap();
    let entries = read.into_iter().map(|kind| match kind {
        Kind::TableEntry(entry) => entry,
        other => panic!("{other:?}"),
    });
    entries.collect()
}

/// P4_16: `entries` without `const` are there at the start, and are the control plane's from then on.
#[tokio::test]
async fn entries_that_are_not_const_can_be_changed() {
    let open = || {
        with_info(|info| {
            let mut tables = info.tables.iter_mut();
            tables.find(|t| t.is_const_table).unwrap().is_const_table = false;
        })
    };
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.session().await);
    a.become_primary(1).await;
    a.configure(Action::VerifyAndCommit, Some(open()))
        .await
        .unwrap();
    let first = entries(&mut a, &ids).await;
    assert_eq!(first.len(), 2);
    assert!(
        first.iter().all(|e| !e.is_const && e.action.is_some()),
        "{first:?}"
    );
    // The JSON's size is the number of these entries; P4Info has the program's own size.
    for port in 0..10 {
        let more = entry(&ids, &[0x12, port], 5, "to_cpu");
        a.insert(Kind::TableEntry(more)).await.unwrap();
    }
    let mut changed = first[0].clone();
    changed.action = first[1].action.clone();
    a.modify(Kind::TableEntry(changed.clone())).await.unwrap();
    a.delete(Kind::TableEntry(first[1].clone())).await.unwrap();
    let now = entries(&mut a, &ids).await;
    assert_eq!(now.len(), 11);
    assert!(now.contains(&changed) && !now.contains(&first[1]));
    // What clients made of them is kept by RECONCILE; COMMIT starts anew.
    a.configure(Action::ReconcileAndCommit, Some(open()))
        .await
        .unwrap();
    let kept = entries(&mut a, &ids).await;
    assert!(kept.len() == 11 && now.iter().all(|e| kept.contains(e)));
    a.configure(Action::VerifyAndCommit, Some(open()))
        .await
        .unwrap();
    assert_eq!(entries(&mut a, &ids).await, first);
    // The same program with `const entries`: the program's, and no others.
    a.insert(Kind::TableEntry(entry(&ids, &[0x12, 0], 5, "to_cpu")))
        .await
        .unwrap();
    a.configure(Action::ReconcileAndCommit, Some(config()))
        .await
        .unwrap();
    let constant = entries(&mut a, &ids).await;
    assert!(
        constant.len() == 2 && constant.iter().all(|e| e.is_const),
        "{constant:?}"
    );
    let (code, _) = a
        .delete(Kind::TableEntry(first[0].clone()))
        .await
        .unwrap_err();
    assert_eq!(code, Code::PermissionDenied);
    // And a size that no memory has.
    let huge = with_info(|info| {
        let table = info.tables.iter_mut().find(|t| t.is_const_table).unwrap();
        (table.is_const_table, table.size) = (false, u32::MAX.into());
    });
    let status = a.configure(Action::Verify, Some(huge)).await.unwrap_err();
    let text = "P4Info: table EntitiesIngress.const_table of 4294967295 entries would take";
    assert!(status.message().starts_with(text), "{}", status.message());
}

/// What p4c makes of `entries`, of keys of type `error` (to which P4Info gives no width), and of `log_msg("text")`.
#[tokio::test]
async fn errors_are_keys_and_entries_are_there_at_the_start() {
    let switch = Switch::start().await;
    let (config, mut a) = (errors_config(), switch.session().await);
    let ids = Ids(config.p4info.clone().unwrap());
    a.become_primary(1).await;
    a.configure(Action::VerifyAndCommit, Some(config))
        .await
        .unwrap();
    switch.receive(1, vec![2, 0, 0, 0, 7]).await;
    assert_eq!(switch.sent().await.0, 2);
    switch.receive(1, vec![3, 0, 0, 0, 7]).await;
    assert!(switch.sent_nothing().await);
    let forward = |table: &str, key, port: u8, priority| {
        Kind::TableEntry(TableEntry {
            table_id: ids.tables(table),
            r#match: vec![key],
            priority,
            action: ids.action("forward", &[&[port]]),
            ..Default::default()
        })
    };
    a.insert(forward("by_kind", exact(1, &[3]), 3, 0))
        .await
        .unwrap();
    switch.receive(1, vec![3, 0, 0, 0, 7]).await;
    assert_eq!(switch.sent().await.0, 3);
    // PacketTooShort is 1, HeaderTooShort 4; NoError is 0.
    let by_mask = forward(
        "by_error_mask",
        ternary(1, &[1], &[0xff, 0xff, 0xff, 0xff]),
        3,
        7,
    );
    a.insert(by_mask).await.unwrap();
    switch.receive(1, vec![2, 0]).await;
    assert_eq!(switch.sent().await.0, 3);
    let by_value = forward("by_error", exact(1, &[1]), 4, 0);
    a.insert(by_value.clone()).await.unwrap();
    switch.receive(1, vec![2, 0]).await;
    assert_eq!(switch.sent().await.0, 4);
    switch.receive(1, vec![2, 0, 0, 0, 7]).await;
    assert_eq!(switch.sent().await.0, 2);
    let table = Kind::TableEntry(TableEntry {
        table_id: ids.tables("by_error"),
        ..Default::default()
    });
    assert_eq!(a.read(vec![table]).await.unwrap(), [by_value]);
    // What the program put there can be changed, also when an entry somewhere carries something for its client.
    let mut marked = forward("by_kind", exact(1, &[4]), 3, 0);
    if let Kind::TableEntry(entry) = &mut marked {
        entry.metadata = vec![7].into();
    }
    a.insert(marked).await.unwrap();
    let changed = forward("by_kind", exact(1, &[2]), 4, 0);
    a.modify(changed).await.unwrap();
    switch.receive(1, vec![2, 0, 0, 0, 7]).await;
    assert_eq!(switch.sent().await.0, 4);
}

/// RECONCILE keeps what the new program has in the same shape. The rest is gone, for a Read as for packets.
#[tokio::test]
async fn what_a_reconcile_cannot_keep_is_forgotten() {
    let switch = Switch::start().await;
    let (ids, mut a) = (Ids::default(), switch.primary().await);
    let set = |values: &[u8]| {
        let member = |value: &u8| ValueSetMember {
            r#match: vec![exact(1, &[0x43, *value])],
        };
        Kind::ValueSetEntry(ValueSetEntry {
            value_set_id: ids.value_sets("label_types"),
            members: values.iter().map(member).collect(),
        })
    };
    let default = |action, metadata: &'static [u8]| {
        Kind::TableEntry(TableEntry {
            table_id: ids.tables("ternary_table"),
            is_default_action: true,
            action,
            metadata: metadata.into(),
            ..Default::default()
        })
    };
    let to_port_3 = default(ids.action("forward", &[&[3]]), b"mine");
    a.modify(set(&[0x21])).await.unwrap();
    a.modify(to_port_3.clone()).await.unwrap();
    let spread = one_shot(&ids, &[2, 3]);
    a.insert(points_to(&ids, "selector_table", 4, spread))
        .await
        .unwrap();

    // The value set is larger, and the one-shot's table has another key: its action profile is the same.
    let other_key = ForwardingPipelineConfig {
        p4info: with_info(|info| info.value_sets[0].size = 8).p4info,
        ..with_json(|json| {
            json["parse_vsets"][0]["max_size"] = 8.into();
            let tables = json["pipelines"][0]["tables"].as_array_mut().unwrap();
            let mut tables = tables.iter_mut();
            let table = tables.find(|t| t["name"] == "EntitiesIngress.selector_table");
            table.unwrap()["key"][0]["name"] = "kind".into();
        })
    };
    let reconcile = Action::ReconcileAndCommit;
    a.configure(reconcile, Some(other_key)).await.unwrap();
    let mut packet = labelled(1, 1, 1);
    packet[12..14].copy_from_slice(&[0x43, 0x21]);
    switch.receive(1, packet).await;
    assert_eq!(switch.sent().await.0, 3);
    let of_table = |name| {
        Kind::TableEntry(TableEntry {
            table_id: ids.tables(name),
            ..Default::default()
        })
    };
    let all = vec![set(&[]), to_port_3.clone(), of_table("selector_table")];
    let read = a.read(all).await.unwrap();
    assert_eq!(read, [set(&[0x21]), to_port_3]);
    let solo = || {
        [
            member(&ids, "spread", 1, 2),
            Kind::ActionProfileGroup(group(&ids, 1, &[(1, 1)])),
        ]
    };
    for kind in solo() {
        a.insert(kind).await.unwrap();
    }

    // An action of the selector and of ternary_table has one more parameter, and the value set has no room.
    let other_action = ForwardingPipelineConfig {
        p4info: with_info(|info| {
            info.value_sets[0].size = 0;
            let named = |name: &str| name == "EntitiesIngress.rewrite";
            let mut actions = info.actions.iter_mut();
            let rewrite = actions.find(|a| named(&a.preamble.as_ref().unwrap().name));
            rewrite.unwrap().params.push(Param {
                id: 3,
                name: "more".into(),
                bitwidth: 8,
                ..Default::default()
            });
        })
        .p4info,
        ..with_json(|json| {
            for action in json["actions"].as_array_mut().unwrap() {
                if action["name"] == "EntitiesIngress.rewrite" {
                    let more = serde_json::json!({"name": "more", "bitwidth": 8});
                    action["runtime_data"].as_array_mut().unwrap().push(more);
                }
            }
        })
    };
    a.configure(reconcile, Some(other_action)).await.unwrap();
    let all = [
        set(&[]),
        default(None, b""),
        Kind::ActionProfileMember(Default::default()),
        Kind::ActionProfileGroup(Default::default()),
    ];
    let own = default(ids.action("NoAction", &[]), b"");
    assert_eq!(a.read(all.to_vec()).await.unwrap(), [set(&[]), own]);
    for kind in solo() {
        a.insert(kind).await.unwrap();
    }
}
