// SPDX-License-Identifier: Apache-2.0
//! Action calls as words: which action (or member, or group) an entry names.

use std::fmt::Display;

use crate::bits::{limbs_for, low_mask};
use crate::entry::ActionCall;
use crate::error::ControlError;
use crate::schema::{ActionId, ActionSchema};

const KIND: u32 = 3 << 30;
const MEMBER: u32 = 1 << 30;
const GROUP: u32 = 2 << 30;

/// What an entry does, in 32 bits: an action, or a place in an action profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionWord(pub u32);

/// An [`ActionWord`] taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// An action of the table.
    Action(ActionId),
    /// A place of a member in the profile.
    Member(u32),
    /// A place of a group in the profile.
    Group(u32),
}

impl ActionWord {
    pub fn action(action: ActionId) -> Self {
        debug_assert!(action.0 & KIND == 0);
        ActionWord(action.0)
    }

    pub fn member(place: u32) -> Self {
        debug_assert!(place & KIND == 0);
        ActionWord(place | MEMBER)
    }

    pub fn group(place: u32) -> Self {
        debug_assert!(place & KIND == 0);
        ActionWord(place | GROUP)
    }

    #[inline(always)]
    pub fn callee(self) -> Callee {
        match self.0 & KIND {
            MEMBER => Callee::Member(self.0 & !KIND),
            GROUP => Callee::Group(self.0 & !KIND),
            _ => Callee::Action(ActionId(self.0)),
        }
    }
}

/// Checks a call against the actions that `allowed` names. `place` says whose call it is, for the error.
pub fn check_call(
    allowed: &[ActionId],
    actions: &[ActionSchema],
    call: &ActionCall,
    place: impl Display,
) -> Result<ActionWord, ControlError> {
    let invalid = |text: String| Err(ControlError::invalid(text).at(&place));
    let Some(action) = actions.get(call.action.index()) else {
        return invalid(format!("there is no action with id {}", call.action.0));
    };
    if !allowed.contains(&call.action) {
        let names = allowed.iter().map(|a| actions[a.index()].name.as_str());
        return invalid(format!(
            "action {} is not one of its actions: {}",
            action.name,
            names.collect::<Vec<_>>().join(", ")
        ));
    }
    let limbs = action.arg_limbs();
    if call.args.len() != limbs {
        return invalid(format!(
            "action {} takes {limbs} limbs of arguments, {} were given",
            action.name,
            call.args.len()
        ));
    }
    let mut end = 0;
    for param in &action.params {
        end += limbs_for(param.width);
        let unused = !low_mask((param.width + 63) % 64 + 1);
        if param.width > 0 && call.args[end - 1] & unused != 0 {
            return invalid(format!(
                "action {}: parameter {} is {} bits wide, the argument wider",
                action.name, param.name, param.width
            ));
        }
    }
    Ok(ActionWord::action(call.action))
}
