// SPDX-License-Identifier: Apache-2.0
//! The `tcp` object: defaults, every key by its name, and errors that say what is allowed.

use tcp::{Recovery, TcpConfig};

fn parse(json: &str) -> Result<TcpConfig, String> {
    let config: TcpConfig = serde_json::from_str(json).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn every_key_of_the_contract_is_known() {
    let config = parse(
        r#"{"cc": "vegas", "alpha": 1, "beta": 4, "gamma": 2, "recovery": "sack", "mss_bytes": 960, "delayed_ack": false,
            "delayed_ack_timeout_ns": 100000000, "quick_acks": 16, "timestamps": true, "window_scale": true,
            "receive_window_bytes": 100000, "initial_window_packets": 2, "initial_ssthresh_packets": 64,
            "cwnd_clamp_packets": 20, "rto_rule": "rfc6298", "rto_initial_ns": 3000000000, "rto_min_ns": 1000000000,
            "rto_max_ns": 64000000000, "rto_granularity_ns": 100000000, "frto": true, "prr": true,
            "limited_transmit": false, "dupack_threshold": 3, "slow_start_after_idle": true,
            "erto": true, "rack": true, "sack_limit": "outstanding", "sack_buffer_windows": 4,
            "ena": true, "ena_naming": "lowest", "repairs_named": true, "tick_ns": 10000000,
            "backoff": "reset"}"#,
    )
    .expect("all keys are known");
    assert_eq!(
        (config.cc.as_str(), config.params().beta, config.recovery),
        ("vegas", 4, Recovery::Sack)
    );
    assert_eq!(
        parse("{}").expect("all have defaults"),
        TcpConfig::default()
    );
}

#[test]
fn a_control_has_its_own_defaults() {
    let params = |cc: &str| {
        parse(&format!(r#"{{"cc": "{cc}"}}"#))
            .expect("a control")
            .params()
    };
    assert_eq!(
        (
            params("vegas").alpha,
            params("vegas").beta,
            params("vegas").gamma
        ),
        (1, 3, 1)
    );
    assert_eq!(
        (
            params("vegas_linux").alpha,
            params("vegas_linux").beta,
            params("vegas_linux").gamma
        ),
        (2, 4, 1)
    );
}

#[test]
fn errors_name_the_key_and_what_is_allowed() {
    let errors = [
        (
            r#"{"cc": "cubix"}"#,
            "no congestion control is called \"cubix\" (allowed: ",
        ),
        (
            r#"{"recovery": "fack"}"#,
            "unknown variant `fack`, expected one of `tahoe`, `reno`, `newreno`, `sack`",
        ),
        (
            r#"{"mms_bytes": 1}"#,
            "unknown field `mms_bytes`, expected one of `cc`",
        ),
        (
            r#"{"tick_ns": 0}"#,
            "tick_ns: 0 is not allowed (allowed: 1 to 1000000000)",
        ),
        (
            r#"{"mss_bytes": 0}"#,
            "mss_bytes: 0 is not allowed (allowed: 1 to 65483)",
        ),
        (
            r#"{"initial_window_packets": 0}"#,
            "initial_window_packets: 0 is not allowed (allowed: 1 to 65535)",
        ),
        (
            r#"{"rto_initial_ns": 1, "rto_max_ns": 5000}"#,
            "rto_initial_ns: 1 is not allowed (allowed: 1000 to 5000)",
        ),
        (
            r#"{"dupack_threshold": 0}"#,
            "dupack_threshold: 0 is not allowed (allowed: 1 to 255)",
        ),
        (
            r#"{"sack_buffer_windows": 1}"#,
            "sack_buffer_windows: 1 is not allowed (allowed: 2 to 16)",
        ),
        (
            r#"{"sack_limit": "none"}"#,
            "unknown variant `none`, expected `window` or `outstanding`",
        ),
        (
            r#"{"cc": "vegas", "alpha": 5}"#,
            "beta: 3 is not allowed (allowed: 5 to 10000)",
        ),
    ];
    for (json, wanted) in errors {
        let error = parse(json).expect_err(json);
        assert!(error.contains(wanted), "{json}: {error}");
    }
}
