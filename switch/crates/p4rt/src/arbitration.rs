// SPDX-License-Identifier: Apache-2.0
//! Who is primary for which role: the rules of client arbitration, without any I/O (P4Runtime 1.5 §5).

use std::collections::{BTreeMap, HashMap};

use prost_types::Any;
use tonic::{Code, Status};

use crate::error::{bail, quote};
use crate::proto::p4rt::{MasterArbitrationUpdate, Role, Uint128};
use crate::proto::rpc;

/// The role that reads everything and writes nothing: its primary has no right that its backups lack.
pub const OBSERVER_ROLE: &str = "fairlane.observer";

/// Streams of one role that may be open at a time.
pub const MAX_STREAMS_PER_ROLE: usize = 64;
/// Roles that are remembered with their highest election ids.
pub const MAX_ROLES: usize = 64;
/// Longest name of a role.
pub const MAX_ROLE_BYTES: usize = 200;

/// One open `StreamChannel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What must be sent to whom, in order.
pub type Notices = Vec<(StreamId, MasterArbitrationUpdate)>;

/// The clients of one device.
pub struct Arbiter {
    device_id: u64,
    roles: HashMap<String, RoleState>,
    /// Roles that clients left, counted: the one that was left first is forgotten first.
    left: u64,
}

#[derive(Default)]
struct RoleState {
    /// The highest election id ever seen; only its holder is primary.
    highest: Option<u128>,
    primary: Option<StreamId>,
    /// The streams that chose this role with their first message. None: the client has no election id, so it never
    /// becomes primary.
    members: BTreeMap<StreamId, Option<u128>>,
    /// When the last member went, by [`Arbiter::left`].
    left: u64,
}

impl Arbiter {
    pub fn new(device_id: u64) -> Self {
        Self {
            device_id,
            roles: HashMap::new(),
            left: 0,
        }
    }

    /// The role of a stream that has sent an arbitration.
    fn role_of(&self, stream: StreamId) -> Option<(&String, &RoleState)> {
        let mut roles = self.roles.iter();
        roles.find(|(_, state)| state.members.contains_key(&stream))
    }

    /// Takes a client's message and answers with all notices that follow from it.
    ///
    /// # Errors
    /// The status with which the stream must end; the caller then calls [`Arbiter::disconnect`].
    pub fn update(
        &mut self,
        stream: StreamId,
        message: &MasterArbitrationUpdate,
    ) -> Result<Notices, Status> {
        let (role, device) = (role_name(message)?, self.device_id);
        match self.role_of(stream) {
            None => self.check_device(message.device_id)?,
            Some((own, _)) if (own.as_str(), device) == (role, message.device_id) => {}
            Some((own, _)) => {
                let own = describe(own);
                bail!(failed_precondition, "this stream belongs to device {device} and the {own}; open another one for others");
            }
        }
        let id = message.election_id.as_ref().map(to_u128);
        self.make_room(role)?;
        let state = self.roles.entry(role.to_owned()).or_default();
        let mut members = state.members.iter();
        let is_same = |(other, used): (&StreamId, &Option<u128>)| *other != stream && *used == id;
        if let Some(id) = id.filter(|_| members.any(is_same)) {
            bail!(
                invalid_argument,
                "Election id already exists: {id} is used by another client with the {}",
                describe(role)
            );
        }
        if !state.members.contains_key(&stream) && state.members.len() >= MAX_STREAMS_PER_ROLE {
            bail!(
                resource_exhausted,
                "{MAX_STREAMS_PER_ROLE} streams are open for the {}; no more are taken",
                describe(role)
            );
        }
        state.members.insert(stream, id);
        Ok(state.elect(device, role, stream, id))
    }

    /// A new role needs a place: one that nobody has any more is forgotten for it, with its highest election id.
    fn make_room(&mut self, role: &str) -> Result<(), Status> {
        if self.roles.contains_key(role) || self.roles.len() < MAX_ROLES {
            return Ok(());
        }
        // The default role's election id is never forgotten.
        let roles = self.roles.iter();
        let empty = roles.filter(|(name, state)| state.members.is_empty() && !name.is_empty());
        let oldest = empty.min_by_key(|(_, state)| state.left);
        let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
            bail!(
                resource_exhausted,
                "clients have {MAX_ROLES} roles already, and no more are taken"
            );
        };
        self.roles.remove(&oldest);
        Ok(())
    }

    /// A stream has ended.
    pub fn disconnect(&mut self, stream: StreamId) -> Notices {
        let mut roles = self.roles.iter_mut();
        let Some((role, state)) = roles.find(|(_, state)| state.members.contains_key(&stream))
        else {
            return Notices::new();
        };
        state.members.remove(&stream);
        self.left += 1;
        state.left = self.left;
        if state.primary != Some(stream) {
            return Notices::new();
        }
        state.primary = None;
        state.notify_all(self.device_id, role)
    }

    /// # Errors
    /// NOT_FOUND for another device.
    pub fn check_device(&self, device_id: u64) -> Result<(), Status> {
        let own = self.device_id;
        match device_id == own {
            true => Ok(()),
            false => bail!(
                not_found,
                "device {device_id} is unknown; this switch is device {own}"
            ),
        }
    }

    /// May the sender of a unary call change the switch?
    ///
    /// # Errors
    /// NOT_FOUND for an unknown device or role, PERMISSION_DENIED for anyone but the primary.
    pub fn check_primary(
        &self,
        device_id: u64,
        role: &str,
        election_id: Option<&Uint128>,
    ) -> Result<(), Status> {
        self.check_device(device_id)?;
        let state = self.roles.get(role);
        if state.is_none() && !role.is_empty() && role != OBSERVER_ROLE {
            bail!(
                not_found,
                "the {} is unknown: no client has opened a stream for it",
                describe(role)
            );
        }
        let given = election_id.map(to_u128);
        let primary = state.and_then(RoleState::primary_election_id);
        if role != OBSERVER_ROLE && given.is_some() && given == primary {
            return Ok(());
        }
        let given = given.map_or("none".to_owned(), |id| id.to_string());
        let why = not_primary(role, state);
        let text = format!("{why}; the election id of this request is {given}");
        Err(Status::permission_denied(text))
    }

    /// Why a stream may not send what only a primary may.
    pub fn why_not_primary(&self, stream: StreamId) -> String {
        match self.role_of(stream) {
            None => "Not primary: this stream has not sent an arbitration yet".to_owned(),
            Some((role, state)) => not_primary(role, Some(state)),
        }
    }

    /// Has this stream sent an arbitration?
    pub fn knows(&self, stream: StreamId) -> bool {
        self.role_of(stream).is_some()
    }

    /// Is this stream the primary of its role, and may that role do more than read?
    pub fn is_primary(&self, stream: StreamId) -> bool {
        self.primaries().any(|primary| primary == stream)
    }

    /// The primaries of all roles but the observers': none has a config, so each has full access to the pipeline.
    pub fn primaries(&self) -> impl Iterator<Item = StreamId> + '_ {
        let roles = self.roles.iter().filter(|(role, _)| *role != OBSERVER_ROLE);
        roles.filter_map(|(_, state)| state.primary)
    }
}

impl RoleState {
    /// The primary's election id.
    fn primary_election_id(&self) -> Option<u128> {
        self.members.get(&self.primary?).copied().flatten()
    }

    fn elect(&mut self, device_id: u64, role: &str, stream: StreamId, id: Option<u128>) -> Notices {
        if id.is_some() && id >= self.highest {
            self.highest = id;
            self.primary = Some(stream);
            return self.notify_all(device_id, role);
        }
        if self.primary == Some(stream) {
            self.primary = None; // the client has stepped down
            return self.notify_all(device_id, role);
        }
        vec![(stream, self.notice(device_id, role, stream))]
    }

    /// The backups hear first, the primary last (§5.3, 1.2).
    fn notify_all(&self, device_id: u64, role: &str) -> Notices {
        let backups = self.members.keys().filter(|s| Some(**s) != self.primary);
        backups
            .chain(&self.primary)
            .map(|s| (*s, self.notice(device_id, role, *s)))
            .collect()
    }

    fn notice(&self, device_id: u64, role: &str, to: StreamId) -> MasterArbitrationUpdate {
        let (code, message) = match self.primary {
            Some(primary) if primary == to => (Code::Ok, "you are the primary"),
            Some(_) => (
                Code::AlreadyExists,
                "you are a backup: another client is the primary",
            ),
            None => (Code::NotFound, "you are a backup: there is no primary"),
        };
        MasterArbitrationUpdate {
            device_id,
            role: (!role.is_empty()).then(|| Role {
                name: role.to_owned(),
                ..Default::default()
            }),
            election_id: self.highest.map(from_u128),
            status: Some(rpc::Status {
                code: code as i32,
                message: message.to_owned(),
                details: Vec::new(),
            }),
        }
    }
}

/// A role in a sentence.
fn describe(role: &str) -> String {
    match role.is_empty() {
        true => "default role".to_owned(),
        false => format!("role {}", quote(role)),
    }
}

/// Who is primary, and how a client becomes it.
fn not_primary(role: &str, state: Option<&RoleState>) -> String {
    if role == OBSERVER_ROLE {
        return format!("Read-only: the role {role:?} writes nothing");
    }
    let role = describe(role);
    let primary = match state.and_then(RoleState::primary_election_id) {
        Some(id) => format!("the primary of the {role} is the client with the election id {id}"),
        None => format!("the {role} has no primary now"),
    };
    let highest = state.and_then(|state| state.highest).unwrap_or(0);
    format!(
        "Not primary: {primary}; to take over, send an arbitration with a higher election id than {highest} in a StreamChannel"
    )
}

/// The name of the role, "" for the default role.
#[allow(deprecated)]
fn role_name(message: &MasterArbitrationUpdate) -> Result<&str, Status> {
    let Some(role) = &message.role else {
        return Ok("");
    };
    // An empty config restricts nothing; some clients cannot leave it away.
    let config = role.config.as_ref().filter(|c| !is_empty(c));
    if let Some(Any { type_url, .. }) = config {
        bail!(invalid_argument, "role config {} is not understood; leave it unset: every role has full access to the pipeline",
            quote(type_url));
    }
    if role.name.is_empty() && role.id != 0 {
        bail!(
            invalid_argument,
            "role id {} is deprecated; name the role",
            role.id
        );
    }
    if role.name.len() > MAX_ROLE_BYTES {
        bail!(
            invalid_argument,
            "the role {} is too long; at most {MAX_ROLE_BYTES} bytes are allowed",
            quote(&role.name)
        );
    }
    Ok(&role.name)
}

fn is_empty(config: &Any) -> bool {
    config.type_url.ends_with("/google.protobuf.Empty") && config.value.is_empty()
}

pub fn to_u128(id: &Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

pub fn from_u128(id: u128) -> Uint128 {
    Uint128 {
        high: (id >> 64) as u64,
        low: id as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StreamId = StreamId(1);
    const B: StreamId = StreamId(2);
    const C: StreamId = StreamId(3);

    fn hello(role: &str, id: Option<u128>) -> MasterArbitrationUpdate {
        MasterArbitrationUpdate {
            device_id: 1,
            role: (!role.is_empty()).then(|| Role {
                name: role.into(),
                ..Default::default()
            }),
            election_id: id.map(from_u128),
            status: None,
        }
    }

    /// (stream, status code, election id) of each notice.
    fn brief(notices: &Notices) -> Vec<(StreamId, i32, Option<u128>)> {
        notices
            .iter()
            .map(|(s, m)| {
                (
                    *s,
                    m.status.as_ref().unwrap().code,
                    m.election_id.as_ref().map(to_u128),
                )
            })
            .collect()
    }

    const OK: i32 = Code::Ok as i32;
    const BACKUP: i32 = Code::AlreadyExists as i32;
    const NONE: i32 = Code::NotFound as i32;

    #[test]
    fn the_higher_id_takes_over_and_all_are_told() {
        let mut arbiter = Arbiter::new(1);
        assert_eq!(
            brief(&arbiter.update(A, &hello("", Some(5))).unwrap()),
            [(A, OK, Some(5))]
        );
        assert_eq!(
            brief(&arbiter.update(B, &hello("", Some(3))).unwrap()),
            [(B, BACKUP, Some(5))]
        );
        let id = u128::from(u64::MAX) + 7; // both halves count
        let notices = arbiter.update(B, &hello("", Some(id))).unwrap();
        assert_eq!(brief(&notices), [(A, BACKUP, Some(id)), (B, OK, Some(id))]);
        assert!(arbiter.check_primary(1, "", Some(&from_u128(id))).is_ok());
        let status = arbiter
            .check_primary(1, "", Some(&from_u128(5)))
            .unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        assert!(
            status.message().starts_with("Not primary"),
            "{}",
            status.message()
        );
    }

    #[test]
    fn no_backup_is_promoted_when_the_primary_goes() {
        let mut arbiter = Arbiter::new(1);
        arbiter.update(A, &hello("", Some(5))).unwrap();
        arbiter.update(B, &hello("", Some(4))).unwrap();
        assert_eq!(brief(&arbiter.disconnect(A)), [(B, NONE, Some(5))]);
        assert!(arbiter.check_primary(1, "", Some(&from_u128(4))).is_err());
        // The id may be used again: it is the highest, and nobody alive holds it.
        assert_eq!(
            brief(&arbiter.update(C, &hello("", Some(5))).unwrap()),
            [(B, BACKUP, Some(5)), (C, OK, Some(5))]
        );
    }

    #[test]
    fn a_primary_may_step_down() {
        let mut arbiter = Arbiter::new(1);
        arbiter.update(A, &hello("", Some(5))).unwrap();
        arbiter.update(B, &hello("", Some(4))).unwrap();
        let notices = arbiter.update(A, &hello("", Some(2))).unwrap();
        assert_eq!(brief(&notices), [(A, NONE, Some(5)), (B, NONE, Some(5))]);
        assert!(!arbiter.is_primary(A));
    }

    #[test]
    fn without_an_id_a_client_stays_a_backup() {
        let mut arbiter = Arbiter::new(1);
        assert_eq!(
            brief(&arbiter.update(A, &hello("", None)).unwrap()),
            [(A, NONE, None)]
        );
        assert_eq!(
            brief(&arbiter.update(B, &hello("", Some(0))).unwrap()),
            [(A, BACKUP, Some(0)), (B, OK, Some(0))]
        );
    }

    #[test]
    fn an_id_in_use_ends_the_stream() {
        let mut arbiter = Arbiter::new(1);
        arbiter.update(A, &hello("", Some(5))).unwrap();
        let status = arbiter.update(B, &hello("", Some(5))).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(
            status.message().contains("Election id already exists"),
            "{}",
            status.message()
        );
        arbiter.disconnect(B);
        assert!(arbiter.is_primary(A));
    }

    #[test]
    fn roles_are_apart() {
        let mut arbiter = Arbiter::new(1);
        arbiter.update(A, &hello("", Some(5))).unwrap();
        assert_eq!(
            brief(&arbiter.update(B, &hello("stats", Some(5))).unwrap()),
            [(B, OK, Some(5))]
        );
        assert!(arbiter
            .check_primary(1, "stats", Some(&from_u128(5)))
            .is_ok());
        assert_eq!(
            arbiter
                .check_primary(1, "other", Some(&from_u128(5)))
                .unwrap_err()
                .code(),
            Code::NotFound
        );
        let status = arbiter.update(B, &hello("", Some(9))).unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(arbiter.primaries().count(), 2);
    }

    #[test]
    fn an_observer_is_nobodys_primary_and_may_not_write() {
        let mut arbiter = Arbiter::new(1);
        let mut message = hello(OBSERVER_ROLE, Some(5));
        message.role.as_mut().unwrap().config = Some(Any {
            type_url: "type.googleapis.com/google.protobuf.Empty".into(),
            value: vec![],
        });
        let notices = arbiter.update(A, &message).unwrap();
        assert_eq!(brief(&notices), [(A, OK, Some(5))]);
        assert!(!arbiter.is_primary(A));
        assert_eq!(arbiter.primaries().count(), 0);
        let status = arbiter
            .check_primary(1, OBSERVER_ROLE, Some(&from_u128(5)))
            .unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        assert!(
            status.message().starts_with("Read-only"),
            "{}",
            status.message()
        );
        // A lower id than an observer's is primary of the controllers all the same.
        let notices = arbiter.update(B, &hello("", Some(1))).unwrap();
        assert_eq!(brief(&notices), [(B, OK, Some(1))]);
    }

    #[test]
    fn wrong_devices_and_role_configs_are_refused() {
        let mut arbiter = Arbiter::new(1);
        let mut message = hello("", Some(1));
        message.device_id = 2;
        let status = arbiter.update(A, &message).unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(
            status.message(),
            "device 2 is unknown; this switch is device 1"
        );
        arbiter.update(A, &hello("", Some(1))).unwrap();
        assert_eq!(
            arbiter.update(A, &message).unwrap_err().code(),
            Code::FailedPrecondition
        );

        let mut message = hello("r", Some(1));
        message.role.as_mut().unwrap().config = Some(Any {
            type_url: "t/x".into(),
            value: vec![],
        });
        let status = arbiter.update(B, &message).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(
            status
                .message()
                .contains("role config \"t/x\" is not understood"),
            "{}",
            status.message()
        );
    }

    #[test]
    fn too_many_streams_are_refused() {
        let mut arbiter = Arbiter::new(1);
        for i in 0..MAX_STREAMS_PER_ROLE as u64 {
            arbiter.update(StreamId(100 + i), &hello("", None)).unwrap();
        }
        assert_eq!(
            arbiter.update(A, &hello("", None)).unwrap_err().code(),
            Code::ResourceExhausted
        );
    }
}
