# SPDX-License-Identifier: Apache-2.0
"""Writes the FileDescriptorSet of P4Runtime, P4Info, google.rpc and gNMI that finsy's wheel carries.

The Rust build makes its message types from `descriptors.fds` beside this file, so no .proto file is kept in this tree.
Run `python switch/crates/proto/descriptors.py` again for another version of finsy (`switch/tests/test_descriptors.py`).
"""

from pathlib import Path

from finsy.proto import gnmi, p4i, p4r, rpc_code
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

ROOTS = [p4r.DESCRIPTOR, p4i.DESCRIPTOR, rpc_code.DESCRIPTOR, gnmi.DESCRIPTOR]
OUTPUT = Path(__file__).with_name("descriptors.fds")


def descriptor_set(roots: list[FileDescriptor]) -> FileDescriptorSet:
    """Return the files of `roots` and all that they import, every file after those that it imports."""
    done: dict[str, FileDescriptorProto] = {}

    def add(file: FileDescriptor) -> None:
        if file.name in done:
            return
        for dependency in file.dependencies:
            add(dependency)
        proto = FileDescriptorProto()
        file.CopyToProto(proto)
        done[file.name] = proto

    for root in roots:
        add(root)
    return FileDescriptorSet(file=done.values())


def main() -> None:
    OUTPUT.write_bytes(descriptor_set(ROOTS).SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
