// SPDX-License-Identifier: Apache-2.0
//! Makes the Rust message types and services from `descriptors.fds`, which `descriptors.py` writes.

use prost::Message;

const DESCRIPTORS: &str = "descriptors.fds";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={DESCRIPTORS}");
    if let Err(error) = generate() {
        println!("cargo::error={DESCRIPTORS}: {error}");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), Box<dyn std::error::Error>> {
    let bytes = std::fs::read(DESCRIPTORS)?;
    let mut set = prost_types::FileDescriptorSet::decode(bytes.as_slice())?;
    keep_updates(&mut set);
    tonic_prost_build::configure()
        .bytes(".p4")
        .include_file("protocols.rs")
        .compile_fds(set)?;
    own_service();
    Ok(())
}

/// The updates of a Write stay as they came, so that their reader decodes one after another: all of them at once take many
/// times their bytes.
fn keep_updates(set: &mut prost_types::FileDescriptorSet) {
    let messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    let writes = messages.filter(|message| message.name() == "WriteRequest");
    for field in writes.flat_map(|message| &mut message.field) {
        if field.name() == "updates" {
            field.set_type(prost_types::field_descriptor_proto::Type::Bytes);
            field.type_name = None;
        }
    }
}

/// `fairlane.v1.Switch`, whose messages are `google.protobuf.Struct`: it needs no .proto file.
fn own_service() {
    let method = |name: &str, route: &str| {
        tonic_build::manual::Method::builder()
            .name(name)
            .route_name(route)
            .input_type("::prost_types::Struct")
            .output_type("::prost_types::Struct")
            .codec_path("::tonic_prost::ProstCodec")
    };
    let service = tonic_build::manual::Service::builder()
        .name("Switch")
        .package("fairlane.v1")
        .comment("Requests that P4Runtime and gNMI do not have.")
        .method(
            method("trace", "Trace")
                .comment("The path of one packet through the pipeline.")
                .build(),
        )
        .method(
            method("trace_live", "TraceLive")
                .comment("The next packets that match.")
                .server_streaming()
                .build(),
        )
        .build();
    tonic_build::manual::Builder::new().compile(&[service]);
}
