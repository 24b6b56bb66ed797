// SPDX-License-Identifier: Apache-2.0
//! Control flow of ingress and egress: tables, conditions and direct action calls as operations.

use std::collections::{HashMap, HashSet};

use super::code::{Next, Note, Op, Spot};
use super::emit::{index16, Emitter, Label, END};
use super::expr::ExprReader;
use super::flow::{loop_heads, Exit};
use super::layout::Layout;
use super::names::Names;
use super::{action, table};
use crate::bits::limbs_for;
use crate::json::{fail, At, Json, Load, Unique};
use crate::schema::{ActionId, ActionSchema, ParamSchema, Schema};

/// What the nodes of both controls share.
pub(crate) struct Controls<'c> {
    pub layout: &'c Layout,
    pub names: &'c Names,
    /// Actions of the JSON, by id.
    pub actions: &'c [Json<'c>],
    /// By name; the same P4 action may be there several times.
    pub actions_named: &'c HashMap<&'c str, Vec<ActionId>>,
    /// Runtime data of each action: limb offset and width.
    pub params: &'c [Vec<(u16, u32)>],
}

/// A table, a condition, or a call of an action.
#[derive(Clone, Copy)]
enum Kind {
    Table(u16),
    Condition,
    Call,
}

struct Node<'c> {
    kind: Kind,
    json: Json<'c>,
    label: Label,
}

struct Control<'c> {
    shared: &'c Controls<'c>,
    nodes: Vec<Node<'c>>,
    indexes: HashMap<&'c str, usize>,
}

/// Compiles the control called `name`; returns its start.
pub(crate) fn control(
    e: &mut Emitter,
    shared: &Controls,
    root: &Json,
    name: &str,
    schema: &mut Schema,
) -> Load<Label> {
    let pipelines_json = root.get("pipelines")?;
    let pipelines = pipelines_json.items()?;
    let named = |p: &&Json| p.str_at("name").is_ok_and(|n| n == name);
    let Some(json) = pipelines.iter().find(named) else {
        fail!(
            pipelines_json,
            "there is no pipeline `{name}`; v1model has ingress and egress"
        );
    };
    table::profiles(e, json, schema)?;
    let mut control = Control {
        shared,
        nodes: Vec::new(),
        indexes: HashMap::new(),
    };
    let mut unique = Unique::new("table, condition or action call");
    let elsewhere: HashSet<String> = schema.tables.iter().map(|t| t.name.clone()).collect();
    for list in ["tables", "conditionals", "action_calls"] {
        for json in json.list(list)? {
            let name = unique.add_name_of(&json)?;
            let kind = match list {
                "conditionals" => Kind::Condition,
                "action_calls" => Kind::Call,
                _ if elsewhere.contains(name) => {
                    fail!(json, "the other pipeline has a table `{name}` too")
                }
                _ => {
                    let code = table::table(&json, shared, schema)?;
                    let index = index16(e.program.tables.len(), "tables").at(&json)?;
                    e.program.tables.push(code);
                    Kind::Table(index)
                }
            };
            control.indexes.insert(name, control.nodes.len());
            let label = e.label();
            control.nodes.push(Node { kind, json, label });
        }
    }
    control.check_end()?;
    for node in &control.nodes {
        e.place(node.label);
        if let Some(following) = control.emit(e, schema, node)? {
            e.jump(following);
        }
        e.end_statement();
    }
    let init = json.opt("init_table");
    init.map_or(Ok(END), |init| control.label(&init))
}

impl Control<'_> {
    /// Refuses a control that comes back to where it was: P4 has no such, and a packet would never leave it.
    fn check_end(&self) -> Load<()> {
        let mut following: Vec<Vec<usize>> = Vec::new();
        for Node { json, .. } in &self.nodes {
            let keys = ["base_default_next", "true_next", "false_next", "next_node"];
            let mut to: Vec<Json> = keys.iter().filter_map(|key| json.opt(key)).collect();
            if let Some(next_tables) = json.opt("next_tables") {
                to.extend(next_tables.members()?.into_iter().map(|(_, to)| to));
            }
            let names = to.iter().filter_map(|to| to.str().ok());
            following.push(names.filter_map(|n| self.indexes.get(n).copied()).collect());
        }
        let heads = loop_heads(following.len(), |at, next| next.extend(&following[at]));
        match self.nodes.iter().zip(heads).find(|(_, head)| *head) {
            Some((Node { json, .. }, _)) => fail!(json, "the control comes back to `{}`; what follows a table, condition or action call may not lead to it again",
                json.str_at("name")?),
            None => Ok(()),
        }
    }

    fn label(&self, json: &Json) -> Load<Label> {
        let name = json.str()?;
        match self.indexes.get(name) {
            Some(&index) => Ok(self.nodes[index].label),
            None => fail!(json, "there is no table, condition or action call `{name}`"),
        }
    }

    fn next(&self, json: &Json, key: &'static str) -> Load<Label> {
        json.opt(key).map_or(Ok(END), |next| self.label(&next))
    }

    /// Emits a node; returns where its code falls through to, if it does.
    fn emit(&self, e: &mut Emitter, schema: &Schema, node: &Node) -> Load<Option<Label>> {
        let json = &node.json;
        match node.kind {
            Kind::Condition => {
                let reader = self.shared.reader(&[]);
                let cond_json = json.get("expression")?;
                let cond = reader.cond(&cond_json)?;
                let no = self.next(json, "false_next")?;
                let yes = self.next(json, "true_next")?;
                e.note(Note::Condition(Spot::new(json, "name")));
                let fails = e.label();
                let emitted = e.branch(&cond, false, fails);
                emitted.at(&cond_json)?;
                for (held, to) in [(true, yes), (false, no)] {
                    e.note(Note::Decided(held));
                    e.jump(to);
                    if held {
                        e.place(fails);
                    }
                }
                Ok(None)
            }
            Kind::Call => {
                let action = self.shared.names.action(&json.get("action_id")?)?;
                e.note(Note::Call(action.0, Spot::new(json, "name")));
                self.shared.action(e, action)?;
                Ok(Some(self.next(json, "next_node")?))
            }
            Kind::Table(index) => {
                let next = self.next_nodes(json, schema)?;
                let table = &schema.tables[usize::from(index)];
                // A table of the compiler's making: no key, one action for ever.
                if table.keys.is_empty()
                    && table.const_default_action
                    && table.direct_counter.is_none()
                    && table.profile.is_none()
                {
                    let call = table
                        .default_action
                        .clone()
                        .expect("a constant default action");
                    for (i, limb) in call.args.into_iter().enumerate() {
                        let a = e.constant(limb).at(json)?;
                        let d = e.args + i as u16;
                        e.op(Op::copy(d, a));
                    }
                    e.note(Note::Call(call.action.0, Spot::new(json, "name")));
                    self.shared.action(e, call.action)?;
                    return Ok(Some(next.to(false, Some(call.action.index()))));
                }
                e.program.tables[usize::from(index)].next = next;
                e.note(Note::Table(index, Spot::new(json, "name")));
                e.exit(Exit::Apply { table: index });
                Ok(None)
            }
        }
    }

    fn next_nodes(&self, json: &Json, schema: &Schema) -> Load<Next> {
        let no_action = self.next(json, "base_default_next")?;
        let mut next = Next {
            by_action: vec![no_action; schema.actions.len()],
            no_action,
            ..Next::default()
        };
        let next_json = json.get("next_tables")?;
        for (name, target) in next_json.members()? {
            let to = if target.is_null() {
                END
            } else {
                self.label(&target)?
            };
            match name {
                "__HIT__" => next.hit = Some(to),
                "__MISS__" => next.miss = Some(to),
                _ => {
                    // All of this name: a member of a shared profile may name another table's copy.
                    for action in self.shared.actions_named.get(name).into_iter().flatten() {
                        next.by_action[action.index()] = to;
                    }
                }
            }
        }
        Ok(next)
    }
}

impl Controls<'_> {
    fn reader<'r>(&'r self, params: &'r [(u16, u32)]) -> ExprReader<'r> {
        ExprReader {
            layout: self.layout,
            names: self.names,
            params,
        }
    }

    /// Emits an action.
    fn action(&self, e: &mut Emitter, action: ActionId) -> Load<()> {
        let json = &self.actions[action.index()];
        let reader = self.reader(&self.params[action.index()]);
        let traits = action::primitives(e, &reader, &json.list("primitives")?)?;
        if traits.exits {
            e.op(Op::CheckExit);
        }
        Ok(())
    }

    /// Emits all actions as code that `Apply` calls.
    pub fn emit_actions(&self, e: &mut Emitter) -> Load<()> {
        for index in 0..self.actions.len() as u32 {
            let start = e.here();
            e.program.actions.push(start);
            e.note(Note::Action(index));
            self.action(e, ActionId(index))?;
            e.exit(Exit::Return);
        }
        Ok(())
    }
}

/// The schema of an action and where its runtime data lie.
pub(crate) fn action_schema(json: &Json, id: ActionId) -> Load<(ActionSchema, Vec<(u16, u32)>)> {
    let (mut params, mut places, mut offset) = (Vec::new(), Vec::new(), 0);
    for param in json.list("runtime_data")? {
        let width = param.u32_at("bitwidth")?;
        params.push(ParamSchema {
            name: param.str_at("name")?.to_string(),
            width,
        });
        places.push((offset as u16, width));
        offset += limbs_for(width);
        if offset > 1 << 12 {
            fail!(param, "the arguments of an action are too wide");
        }
    }
    Ok((
        ActionSchema {
            id,
            name: json.str_at("name")?.to_string(),
            params,
        },
        places,
    ))
}
