// SPDX-License-Identifier: Apache-2.0
//! A binary ends at a panic, but not at one in the loading of a program. One test: the hook is the process's.

#[test]
fn a_panic_in_loading_is_survived() {
    netio::process::end_at_a_panic();
    let fault = v1model::error::contained(|| panic!("in a program"));
    let text: Result<(), _> = fault.map_err(|fault| fault.to_string());
    assert_eq!(text, Err("in a program".to_string()));
}
