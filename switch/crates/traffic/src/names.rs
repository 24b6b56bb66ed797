// SPDX-License-Identifier: Apache-2.0
//! Options that are one of a few words: the words are written once, and read with an error that lists them.

use thiserror::Error;

/// A word that is none of those allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{option} \"{given}\" is unknown; allowed: {allowed}")]
pub struct UnknownName {
    /// The option.
    pub option: &'static str,
    /// What was given.
    pub given: String,
    /// The words allowed.
    pub allowed: String,
}

macro_rules! named {
    ($(#[$of:meta])* pub enum $type:ident ($option:literal) {
        $($(#[$doc:meta])* $name:ident = $text:literal,)*
    }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $type { $($(#[$doc])* $name,)* }

        impl $type {
            /// All of them.
            pub const ALL: &'static [$type] = &[$($type::$name,)*];

            /// Their names.
            pub const NAMES: &'static [&'static str] = &[$($text,)*];

            /// Its name in options.
            pub fn name(self) -> &'static str {
                match self { $($type::$name => $text,)* }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(given: &str) -> Result<$type, $crate::UnknownName> {
                let found = $type::ALL.iter().find(|each| each.name() == given);
                found.copied().ok_or_else(|| $crate::UnknownName {
                    option: $option,
                    given: given.to_owned(),
                    allowed: $type::NAMES.join(", "),
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<$type, D::Error> {
                let given = <String as serde::Deserialize>::deserialize(reader)?;
                given.parse().map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                writer.serialize_str(self.name())
            }
        }
    };
}
pub(crate) use named;
