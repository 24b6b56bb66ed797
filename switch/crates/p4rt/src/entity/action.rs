// SPDX-License-Identifier: Apache-2.0
//! Actions with their parameters: `Action` messages to the pipeline's calls and back (P4Runtime 1.5 §9.1.2).

use v1model::ActionCall;

use crate::binding::{list_known, TableBinding};
use crate::bytestring;
use crate::error::{refusal, refuse, Refusal};
use crate::proto::p4info::action_ref::Scope;
use crate::proto::p4rt::action::Param;
use crate::proto::p4rt::Action;

/// Where an action is about to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Entry,
    Default,
}

/// # Errors
/// INVALID_ARGUMENT for an action that the table has not and for unknown, doubled or missing parameters,
/// PERMISSION_DENIED for an action that may not stand there, OUT_OF_RANGE for a value that does not fit.
pub fn decode(table: &TableBinding, action: &Action, place: Place) -> Result<ActionCall, Refusal> {
    let bound = table.action(action.action_id)?;
    match (bound.scope, place) {
        (Scope::TableOnly, Place::Default) => {
            refuse!(
                denied,
                "action {} is @tableonly: it cannot be the default action",
                bound.name
            )
        }
        (Scope::DefaultOnly, Place::Entry) => {
            refuse!(
                denied,
                "action {} is @defaultonly: no entry can call it",
                bound.name
            )
        }
        _ => {}
    }
    let at = |e: Refusal, name: &str| e.at(format_args!("action {}: parameter {name}", bound.name));
    let mut args = vec![None; bound.params.len()];
    for param in &action.params {
        let Some(index) = bound.params.iter().position(|p| p.id == param.param_id) else {
            let known = list_known(bound.params.iter().map(|p| (p.id, p.name.as_str())));
            refuse!(
                invalid,
                "action {}: parameter id {} is unknown; {known}",
                bound.name,
                param.param_id
            );
        };
        let own = &bound.params[index];
        if args[index].is_some() {
            return Err(at(Refusal::invalid("it is given twice"), &own.name));
        }
        args[index] =
            Some(bytestring::decode(&param.value, own.width).map_err(|e| at(e, &own.name))?);
    }
    let missing = |i: usize| {
        let own = &bound.params[i];
        refusal!(
            invalid,
            "action {}: parameter {} (id {}) is missing",
            bound.name,
            own.name,
            own.id
        )
    };
    let args = args
        .into_iter()
        .enumerate()
        .map(|(i, a)| a.ok_or_else(|| missing(i)))
        .collect::<Result<_, _>>()?;
    Ok(ActionCall {
        action: bound.action,
        args,
    })
}

/// None for an action that P4Info does not show.
pub fn encode(table: &TableBinding, call: &ActionCall) -> Option<Action> {
    let bound = table.action_of(call.action)?;
    let pairs = bound.params.iter().zip(&call.args);
    let params = pairs
        .map(|(p, value)| Param {
            param_id: p.id,
            value: bytestring::encode(value),
        })
        .collect();
    Some(Action {
        action_id: bound.id,
        params,
    })
}
