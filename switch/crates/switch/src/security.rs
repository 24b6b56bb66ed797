// SPDX-License-Identifier: Apache-2.0
//! Whom the server talks to: TLS by the files of the command line, and beyond loopback only clients with a certificate.

use std::path::Path;

use p4rt::Tls;

use crate::options::Options;

/// The TLS that the options ask for.
///
/// # Errors
/// A sentence: a file that cannot be read or used; an address that others can reach without TLS, or without a client CA.
pub fn tls(options: &Options) -> Result<Option<Tls>, String> {
    let loopback = options.grpc.ip().is_loopback();
    let (Some(cert), Some(key)) = (&options.tls_cert, &options.tls_key) else {
        return match loopback {
            true => Ok(None),
            false => Err(format!(
                "--grpc {}: without TLS only loopback addresses are served, such as 127.0.0.1:{}; give --tls-cert and \
                 --tls-key (and --tls-client-ca)",
                options.grpc,
                options.grpc.port()
            )),
        };
    };
    let client_ca = options.tls_client_ca.as_deref();
    if !loopback && client_ca.is_none() && !options.any_client {
        return Err(format!(
            "--grpc {}: without --tls-client-ca whoever reaches this address may change the switch; give the CA of your \
             clients, or --any-client if that is what you want",
            options.grpc
        ));
    }
    let ca = client_ca.map(|path| read("--tls-client-ca", path));
    Tls::new(
        &read("--tls-cert", cert)?,
        &read("--tls-key", key)?,
        ca.transpose()?.as_deref(),
    )
    .map(Some)
    .map_err(|error| match client_ca {
        Some(ca) => format!(
            "--tls-cert {}, --tls-key {}, --tls-client-ca {}: {error}",
            cert.display(),
            key.display(),
            ca.display()
        ),
        None => format!(
            "--tls-cert {}, --tls-key {}: {error}",
            cert.display(),
            key.display()
        ),
    })
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| format!("{option}: cannot read {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn options(text: &str) -> Options {
        Options::try_parse_from(text.split_whitespace()).unwrap()
    }

    #[test]
    fn others_are_not_served_without_tls() {
        assert!(tls(&options("fairlane-switch --grpc [::1]:50051"))
            .unwrap()
            .is_none());
        let error = tls(&options("fairlane-switch --grpc 0.0.0.0:50051")).unwrap_err();
        assert!(
            error.starts_with(
                "--grpc 0.0.0.0:50051: without TLS only loopback addresses are served"
            ),
            "{error}"
        );
    }

    #[test]
    fn beyond_loopback_a_client_ca_is_asked_for() {
        let beyond = "fairlane-switch --grpc 0.0.0.0:50051 --tls-cert /nowhere/c.pem --tls-key /nowhere/k.pem";
        let error = tls(&options(beyond)).unwrap_err();
        assert!(
            error.starts_with("--grpc 0.0.0.0:50051: without --tls-client-ca "),
            "{error}"
        );
        for chosen in ["--tls-client-ca /nowhere/ca.pem", "--any-client"] {
            let error = tls(&options(&format!("{beyond} {chosen}"))).unwrap_err();
            assert!(error.contains(": cannot read /nowhere/"), "{error}");
        }
        let both = format!("{beyond} --any-client --tls-client-ca /nowhere/ca.pem");
        assert!(Options::try_parse_from(both.split_whitespace()).is_err());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = tls(&options(
            "fairlane-switch --tls-cert /nowhere/c.pem --tls-key /nowhere/k.pem",
        ))
        .unwrap_err();
        assert!(
            error.starts_with("--tls-cert: cannot read /nowhere/c.pem: "),
            "{error}"
        );
        assert!(Options::try_parse_from(["fairlane-switch", "--tls-cert", "c.pem"]).is_err());
    }
}
