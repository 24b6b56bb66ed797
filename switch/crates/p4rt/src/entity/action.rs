// SPDX-License-Identifier: Apache-2.0
//! Actions with their parameters: `Action` messages to the pipeline's calls and back (P4Runtime 1.5 §9.1.2).

use v1model::bits::limbs_for;
use v1model::ActionCall;

use crate::binding::{list_known, TableBinding};
use crate::bytestring;
use crate::error::{refuse, At, Refusal};
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
    let params = &bound.params;
    for (i, param) in action.params.iter().enumerate() {
        let Some(own) = params.iter().find(|p| p.id == param.param_id) else {
            let known = list_known(params.iter().map(|p| (p.id, p.name.as_str())));
            refuse!(
                invalid,
                "action {}: parameter id {} is unknown; {known}",
                bound.name,
                param.param_id
            );
        };
        let before = &action.params[..i];
        if before.iter().any(|p| p.param_id == param.param_id) {
            refuse!(
                invalid,
                "action {}: parameter {}: it is given twice",
                bound.name,
                own.name
            );
        }
    }
    let mut args = Vec::with_capacity(params.len());
    for (i, own) in params.iter().enumerate() {
        // Clients mostly send them in order: look there first.
        let given = action.params.get(i).filter(|p| p.param_id == own.id);
        let given = given.or_else(|| action.params.iter().find(|p| p.param_id == own.id));
        let Some(given) = given else {
            refuse!(
                invalid,
                "action {}: parameter {} (id {}) is missing",
                bound.name,
                own.name,
                own.id
            );
        };
        bytestring::push(&given.value, own.width, &mut args).at(format_args!(
            "action {}: parameter {}",
            bound.name, own.name
        ))?;
    }
    Ok(ActionCall {
        action: bound.action,
        args,
    })
}

/// None for an action that P4Info does not show.
pub fn encode(table: &TableBinding, call: &ActionCall) -> Option<Action> {
    let bound = table.action_of(call.action)?;
    let mut args = &call.args[..];
    let params = bound.params.iter().map(|p| {
        let (own, rest) = args.split_at(limbs_for(p.width).min(args.len()));
        args = rest;
        Param {
            param_id: p.id,
            value: bytestring::encode_limbs(own),
        }
    });
    Some(Action {
        action_id: bound.id,
        params: params.collect(),
    })
}
