// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a configuration or a request: where, what was given, what is allowed.

use std::collections::BTreeSet;
use std::fmt::Display;

/// A configuration that cannot be used; nothing was built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConfigError {
    /// Path of the key, such as `flows[0].app.bytes`; `.` is the whole document.
    pub path: String,
    /// What is wrong, what was given, what is allowed.
    pub message: String,
}

impl ConfigError {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Right, or the first fault.
pub(crate) type Checked = Result<(), ConfigError>;

/// The path of a key of a configuration, such as `flows[0].app`, and what is said of what stands there.
pub(crate) struct KeyPath(String);

impl KeyPath {
    pub(crate) fn new(key: &str) -> KeyPath {
        KeyPath(key.to_owned())
    }

    /// An element of a list.
    pub(crate) fn of(list: &str, index: usize) -> KeyPath {
        KeyPath(format!("{list}[{index}]"))
    }

    /// A key in it.
    pub(crate) fn at(&self, key: impl Display) -> KeyPath {
        KeyPath(format!("{}.{key}", self.0))
    }

    pub(crate) fn error(&self, message: impl Display) -> ConfigError {
        ConfigError::new(&self.0, message.to_string())
    }

    /// `given` stands here; `allowed` says what may.
    pub(crate) fn not_allowed(&self, given: impl Display, allowed: impl Display) -> ConfigError {
        self.error(format_args!("{given} is not allowed; allowed: {allowed}"))
    }

    /// `given` stands here, and is none of these names.
    pub(crate) fn unknown<'a>(
        &self,
        given: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> ConfigError {
        let known = listed(names);
        self.error(format_args!("there is no \"{given}\"; there are: {known}"))
    }

    pub(crate) fn refuse_if(&self, is_wrong: bool, message: impl Display) -> Checked {
        match is_wrong {
            true => Err(self.error(message)),
            false => Ok(()),
        }
    }

    pub(crate) fn allow(
        &self,
        is_allowed: bool,
        given: impl Display,
        allowed: impl Display,
    ) -> Checked {
        match is_allowed {
            true => Ok(()),
            false => Err(self.not_allowed(given, allowed)),
        }
    }

    pub(crate) fn one_of<'a>(
        &self,
        given: &str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Checked {
        match names.clone().any(|name| name == given) {
            true => Ok(()),
            false => Err(self.unknown(given, names)),
        }
    }

    /// `given` stands here, and is one of `others` from now on: nothing else may be called so.
    pub(crate) fn once<T: Display + Ord>(&self, given: T, others: &mut BTreeSet<T>) -> Checked {
        let message = format_args!("\"{given}\" is there twice");
        self.refuse_if(others.contains(&given), message)?;
        others.insert(given);
        Ok(())
    }
}

/// A change that was asked for while it runs and cannot be made; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A name that does not exist.
    #[error("there is no {what} \"{name}\"; there are: {known}")]
    Unknown {
        what: &'static str,
        name: String,
        known: String,
    },
    /// A setting that is unknown or out of its range.
    #[error("{0}")]
    Invalid(String),
}

/// "a", "b", "c" in the order given, or a word for none.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    match quoted.is_empty() {
        true => "none".to_owned(),
        false => quoted.join(", "),
    }
}
