// SPDX-License-Identifier: Apache-2.0
//! Actions with their parameters: `Action` messages to the pipeline's calls and back (P4Runtime 1.5 §9.1.2).

use v1model::bits::limbs_for;
use v1model::ActionCall;

use crate::binding::{self, in_order, Table};
use crate::bytestring;
use crate::error::{refuse, At, Checked};
use crate::proto::p4info::action_ref::Scope;
use crate::proto::p4rt::action::Param;
use crate::proto::p4rt::Action;

/// Decodes the action of an entry, or of a default entry.
///
/// # Errors
/// INVALID_ARGUMENT for an action that the table has not and for unknown, doubled or missing parameters,
/// PERMISSION_DENIED for an action that may not stand there, OUT_OF_RANGE for a value that does not fit.
pub fn decode(table: &Table, action: &Action, is_default: bool) -> Checked<ActionCall> {
    let bound = table.action(action.action_id)?;
    let name = &bound.name;
    match (bound.scope, is_default) {
        (Scope::TableOnly, true) => {
            refuse!(
                PermissionDenied,
                "action {name} is @tableonly: it cannot be the default action"
            )
        }
        (Scope::DefaultOnly, false) => {
            refuse!(
                PermissionDenied,
                "action {name} is @defaultonly: no entry can call it"
            )
        }
        _ => args(bound, &action.params).at(format_args!("action {name}")),
    }
}

fn args(action: &binding::Action, given: &[Param]) -> Checked<ActionCall> {
    let params = &action.params;
    let own = params.iter().map(|p| (p.id, &*p.name));
    let given = in_order("parameter", given, |p| p.param_id, own)?;
    let mut args = Vec::with_capacity(params.len());
    for (own, given) in params.iter().zip(given) {
        let Some(given) = given else {
            refuse!("parameter {} (id {}) is missing", own.name, own.id);
        };
        bytestring::push(&given.value, own.width, &mut args)
            .at(format_args!("parameter {}", own.name))?;
    }
    let action = action.action;
    Ok(ActionCall { action, args })
}

/// None for an action that P4Info does not show.
pub fn encode(table: &Table, call: &ActionCall) -> Option<Action> {
    let bound = table.actions.iter().find(|a| a.action == call.action)?;
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
