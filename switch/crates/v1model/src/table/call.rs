// SPDX-License-Identifier: Apache-2.0
//! Action calls ⇄ words: which action (or member, or group) an entry names, and its arguments as limbs.

use crate::bits::{limbs_for, Bits};
use crate::entry::ActionCall;
use crate::error::{ControlError, ErrorKind};
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

/// Checks a call against the actions that `allowed` names and packs it. `place` says whose call it is, for the error.
pub fn pack_call(
    allowed: &[ActionId],
    actions: &[ActionSchema],
    call: &ActionCall,
    place: impl Fn() -> String,
) -> Result<(ActionWord, Vec<u64>), ControlError> {
    let invalid = |text: String| {
        ControlError::new(ErrorKind::InvalidArgument, format!("{}: {text}", place()))
    };
    let Some(action) = actions.get(call.action.index()) else {
        return Err(invalid(format!(
            "there is no action with id {}",
            call.action.0
        )));
    };
    if !allowed.contains(&call.action) {
        let names: Vec<&str> = allowed
            .iter()
            .map(|a| actions[a.index()].name.as_str())
            .collect();
        return Err(invalid(format!(
            "action {} is not one of its actions: {}",
            action.name,
            names.join(", ")
        )));
    }
    if call.args.len() != action.params.len() {
        return Err(invalid(format!(
            "action {} takes {} arguments, {} were given",
            action.name,
            action.params.len(),
            call.args.len()
        )));
    }
    let mut limbs = Vec::with_capacity(action.arg_limbs());
    for (arg, param) in call.args.iter().zip(&action.params) {
        if arg.width() != param.width {
            return Err(invalid(format!(
                "action {}: parameter {} is {} bits wide, the argument {}",
                action.name,
                param.name,
                param.width,
                arg.width()
            )));
        }
        arg.push_limbs(&mut limbs);
    }
    Ok((ActionWord::action(call.action), limbs))
}

/// The call of `action` with these argument limbs.
pub fn unpack_call(actions: &[ActionSchema], action: ActionId, limbs: &[u64]) -> ActionCall {
    let mut at = 0;
    let args = actions[action.index()]
        .params
        .iter()
        .map(|param| {
            let n = limbs_for(param.width);
            let bits = Bits::from_limbs(param.width, &limbs[at..at + n]);
            at += n;
            bits
        })
        .collect();
    ActionCall { action, args }
}
