// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a configuration or a request: where, what was given, what is allowed.

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

    /// `given` is not allowed here; `allowed` says what is.
    pub(crate) fn value(
        path: impl Into<String>,
        given: impl Display,
        allowed: impl Display,
    ) -> ConfigError {
        ConfigError::new(path, format!("{given} is not allowed; allowed: {allowed}"))
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
