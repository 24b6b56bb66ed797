// SPDX-License-Identifier: Apache-2.0
//! Control flow of ingress and egress: tables, conditions and direct action calls as operations.

use std::collections::{HashMap, HashSet};

use super::action;
use super::code::{Op, TableCode};
use super::cycles::loop_heads;
use super::emit::{index16, Emitter, Label, END};
use super::expr::ExprReader;
use super::flow::Exit;
use super::layout::Layout;
use super::names::Names;
use super::notes::{Note, Spot};
use super::table::{self, Direct};
use crate::bits::limbs_for;
use crate::json::{Json, Load, Unique};
use crate::schema::{ActionId, Schema};

/// What the nodes of both controls share.
pub(crate) struct Controls<'c> {
    pub layout: &'c Layout,
    pub names: &'c Names,
    pub direct: &'c Direct,
    /// Actions of the JSON, by id.
    pub actions: &'c [Json<'c>],
    /// Their names.
    pub action_names: &'c [&'c str],
    /// By name; the same P4 action may be there several times.
    pub actions_named: &'c HashMap<&'c str, Vec<ActionId>>,
    /// Runtime data of each action: limb offset and width.
    pub params: &'c [Vec<(u16, u32)>],
}

enum Node<'c> {
    Table(Json<'c>, u16),
    Condition(Json<'c>),
    Call(Json<'c>),
}

/// Refuses a control that comes back to where it was: P4 has no such, and a packet would never leave it.
fn ends(json: &Json) -> Load<()> {
    let mut all = Vec::new();
    for list in ["tables", "conditionals", "action_calls"] {
        all.extend(json.list(list)?);
    }
    let mut indexes = HashMap::new();
    for (index, node) in all.iter().enumerate() {
        indexes.insert(node.str_at("name")?, index);
    }
    let mut following = Vec::new();
    for node in &all {
        let keys = ["base_default_next", "true_next", "false_next", "next_node"];
        let mut to: Vec<Json> = keys.iter().filter_map(|key| node.opt(key)).collect();
        if let Some(next_tables) = node.opt("next_tables") {
            to.extend(next_tables.members()?.into_iter().map(|(_, to)| to));
        }
        let names = to.iter().filter_map(|to| to.str().ok());
        let next: Vec<usize> = names.filter_map(|n| indexes.get(n).copied()).collect();
        following.push(next);
    }
    let heads = loop_heads(all.len(), |at, next| next.extend(&following[at]));
    match heads.iter().position(|head| *head) {
        Some(at) => all[at].fail(format!(
            "the control comes back to `{}`; what follows a table, condition or action call may not lead to it again",
            all[at].str_at("name")?
        )),
        None => Ok(()),
    }
}

struct Control<'c> {
    shared: &'c Controls<'c>,
    nodes: HashMap<&'c str, (Node<'c>, Label)>,
}

/// Compiles the control called `name`; returns its start.
pub(crate) fn control(
    e: &mut Emitter,
    shared: &Controls,
    root: &Json,
    name: &str,
    schema: &mut Schema,
    selectors: &mut Vec<Option<u16>>,
) -> Load<Label> {
    let pipelines_json = root.get("pipelines")?;
    let pipelines = pipelines_json.items()?;
    let named = |p: &&Json| p.str_at("name").is_ok_and(|n| n == name);
    let Some(json) = pipelines.iter().find(named) else {
        return pipelines_json.fail(format!(
            "there is no pipeline `{name}`; v1model has ingress and egress"
        ));
    };
    let mut calculations = std::mem::take(&mut e.program.calculations);
    table::profiles(json, shared.layout, schema, &mut calculations, selectors)?;
    e.program.calculations = calculations;
    let mut nodes = HashMap::new();
    let mut unique = Unique::new("table, condition or action call");
    let elsewhere: HashSet<String> = schema.tables.iter().map(|t| t.name.clone()).collect();
    for table_json in json.list("tables")? {
        let name = unique.add_name_of(&table_json)?;
        if elsewhere.contains(name) {
            return table_json.fail(format!("the other pipeline has a table `{name}` too"));
        }
        let code = table::table(
            &table_json,
            shared.layout,
            shared.names,
            shared.direct,
            shared.action_names,
            schema,
            selectors,
        )?;
        let index = index16(e.program.tables.len(), "tables").map_err(|m| table_json.error(m))?;
        e.program.tables.push(code);
        let label = e.label();
        nodes.insert(name, (Node::Table(table_json.clone(), index), label));
    }
    for condition in json.list("conditionals")? {
        let (name, label) = (unique.add_name_of(&condition)?, e.label());
        nodes.insert(name, (Node::Condition(condition.clone()), label));
    }
    for call in json.list("action_calls")? {
        let (name, label) = (unique.add_name_of(&call)?, e.label());
        nodes.insert(name, (Node::Call(call.clone()), label));
    }
    ends(json)?;
    let control = Control { shared, nodes };
    control.emit_all(e, schema, json)?;
    match json.opt("init_table") {
        Some(init) => control.label(&init),
        None => Ok(END),
    }
}

impl Control<'_> {
    fn label(&self, json: &Json) -> Load<Label> {
        let name = json.str()?;
        match self.nodes.get(name) {
            Some((_, label)) => Ok(*label),
            None => json.fail(format!(
                "there is no table, condition or action call `{name}`"
            )),
        }
    }

    fn next(&self, json: &Json, key: &'static str) -> Load<Label> {
        json.opt(key).map_or(Ok(END), |next| self.label(&next))
    }

    fn emit_all(&self, e: &mut Emitter, schema: &Schema, json: &Json) -> Load<()> {
        for list in ["tables", "conditionals", "action_calls"] {
            for json in json.list(list)? {
                let (node, label) = &self.nodes[json.str_at("name")?];
                e.place(*label);
                if let Some(following) = self.emit(e, schema, node)? {
                    e.jump(following);
                }
                e.end_statement();
            }
        }
        Ok(())
    }

    /// Emits a node; returns where its code falls through to, if it does.
    fn emit(&self, e: &mut Emitter, schema: &Schema, node: &Node) -> Load<Option<Label>> {
        match node {
            Node::Condition(json) => {
                let reader = self.reader(&[]);
                let cond_json = json.get("expression")?;
                let cond = reader.cond(&cond_json)?;
                let no = self.next(json, "false_next")?;
                let yes = self.next(json, "true_next")?;
                e.note(Note::Condition(Spot::new(json, "name")));
                let fails = e.label();
                let emitted = e.branch(&cond, false, fails);
                emitted.map_err(|m| cond_json.error(m))?;
                for (held, to) in [(true, yes), (false, no)] {
                    e.note(Note::Decided(held));
                    e.jump(to);
                    if held {
                        e.place(fails);
                    }
                }
                Ok(None)
            }
            Node::Call(json) => {
                let action = self.shared.names.action(&json.get("action_id")?)?;
                e.note(Note::Call(action.0, Spot::new(json, "name")));
                self.inline(e, action)?;
                Ok(Some(self.next(json, "next_node")?))
            }
            Node::Table(json, index) => {
                let mut code = e.program.tables[usize::from(*index)].clone();
                self.next_nodes(json, schema, &mut code)?;
                let table = &schema.tables[usize::from(*index)];
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
                        let a = e.constant(limb).map_err(|m| json.error(m))?;
                        let d = e.args + i as u16;
                        e.op(Op::copy(d, a));
                    }
                    let next = code.next.to(false, Some(call.action.index()));
                    e.program.tables[usize::from(*index)] = code;
                    e.note(Note::Call(call.action.0, Spot::new(json, "name")));
                    self.inline(e, call.action)?;
                    return Ok(Some(next));
                }
                e.program.tables[usize::from(*index)] = code;
                e.note(Note::Table(*index, Spot::new(json, "name")));
                e.exit(Exit::Apply { table: *index });
                Ok(None)
            }
        }
    }

    fn reader<'r>(&'r self, params: &'r [(u16, u32)]) -> ExprReader<'r> {
        ExprReader {
            layout: self.shared.layout,
            names: self.shared.names,
            params,
        }
    }

    fn inline(&self, e: &mut Emitter, action: ActionId) -> Load<()> {
        let json = &self.shared.actions[action.index()];
        let reader = self.reader(&self.shared.params[action.index()]);
        let primitives = json.list("primitives")?;
        let traits = action::primitives(e, &reader, &primitives)?;
        if traits.exits {
            e.op(Op::CheckExit);
        }
        Ok(())
    }

    fn next_nodes(&self, json: &Json, schema: &Schema, code: &mut TableCode) -> Load<()> {
        let base = self.next(json, "base_default_next")?;
        let next = &mut code.next;
        next.by_action = vec![base; schema.actions.len()];
        next.no_action = base;
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
        Ok(())
    }
}

/// Emits all actions as code that `Apply` calls.
pub(crate) fn actions(e: &mut Emitter, shared: &Controls) -> Load<()> {
    for (index, json) in shared.actions.iter().enumerate() {
        let start = e.here();
        e.program.actions.push(start);
        e.note(Note::Action(index as u32));
        let reader = ExprReader {
            layout: shared.layout,
            names: shared.names,
            params: &shared.params[index],
        };
        let traits = action::primitives(e, &reader, &json.list("primitives")?)?;
        if traits.exits {
            e.op(Op::CheckExit);
        }
        e.exit(Exit::Return);
    }
    Ok(())
}

/// The schema of an action and where its runtime data lie.
pub(crate) fn action_schema(
    json: &Json,
    id: ActionId,
) -> Load<(crate::schema::ActionSchema, Vec<(u16, u32)>)> {
    let (mut params, mut places, mut offset) = (Vec::new(), Vec::new(), 0);
    for param in json.list("runtime_data")? {
        let width = param.u32_at("bitwidth")?;
        params.push(crate::schema::ParamSchema {
            name: param.str_at("name")?.to_string(),
            width,
        });
        places.push((offset as u16, width));
        offset += limbs_for(width);
        if offset > 1 << 12 {
            return param.fail("the arguments of an action are too wide");
        }
    }
    Ok((
        crate::schema::ActionSchema {
            id,
            name: json.str_at("name")?.to_string(),
            params,
        },
        places,
    ))
}
