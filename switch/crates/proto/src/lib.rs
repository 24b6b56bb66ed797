// SPDX-License-Identifier: Apache-2.0
//! The message types and services that the build makes from finsy's descriptors, under short names.

#![forbid(unsafe_code)]

pub mod weigh;

mod generated {
    #![allow(clippy::all, clippy::pedantic, missing_docs)]
    tonic::include_proto!("protocols");
}

/// `fairlane.v1.Switch`: client and server.
pub mod own {
    #![allow(clippy::all, clippy::pedantic, missing_docs)]
    include!(concat!(env!("OUT_DIR"), "/fairlane.v1.Switch.rs"));
}

pub use generated::gnmi;
pub use generated::gnmi_ext;
pub use generated::google::rpc;
pub use generated::p4::config::v1 as p4info;
pub use generated::p4::v1 as p4rt;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

const DESCRIPTORS: &[u8] = include_bytes!("../descriptors.fds");

/// The descriptors of all these messages.
///
/// # Panics
/// Never: the build checked them.
pub fn descriptors() -> DescriptorPool {
    DescriptorPool::decode(DESCRIPTORS).expect("the build read them")
}

/// Reads a P4Info in protobuf's text format, as p4c writes it (`*.p4info.txtpb`).
///
/// # Errors
/// A sentence with line and column when the text is no P4Info.
pub fn p4info_from_text(text: &str) -> Result<p4info::P4Info, String> {
    let descriptor = descriptors()
        .get_message_by_name("p4.config.v1.P4Info")
        .ok_or("the descriptors hold no P4Info")?;
    let message = DynamicMessage::parse_text_format(descriptor, text)
        .map_err(|e| format!("not a P4Info in text format: {e}"))?;
    p4info::P4Info::decode(message.encode_to_vec().as_slice())
        .map_err(|e| format!("not a P4Info: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_p4info_is_read() {
        let info = p4info_from_text(
            "pkg_info { arch: \"v1model\" }\ntables { preamble { id: 33554433 name: \"I.t\" } size: 1024 }\n",
        )
        .unwrap();
        assert_eq!(info.pkg_info.unwrap().arch, "v1model");
        assert_eq!(info.tables[0].size, 1024);
    }

    #[test]
    fn bad_text_names_the_field() {
        let error = p4info_from_text("tables { nonsense: 1 }").unwrap_err();
        assert!(error.contains("nonsense"), "{error}");
    }
}
