// SPDX-License-Identifier: Apache-2.0
//! TLS of the server: its certificate, whose clients it takes, and what a client's certificate lets the client do.

use std::fmt;
use std::time::Duration;

use tonic::codegen::http::Extensions;
use tonic::transport::server::TlsConnectInfo;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};
use x509_cert::der::oid::db::rfc4519::ORGANIZATIONAL_UNIT_NAME;
use x509_cert::der::Decode;

use crate::connections::Connection;

/// A client that has not finished its handshake by then is cut off.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The organizational unit of a client certificate that may only read.
const OBSERVER_UNIT: &[u8] = b"observer";

/// Put into a request's extensions by whoever checks certificates; without one a client may do everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes.
    #[default]
    Full,
    /// Reads only: a client certificate with the organizational unit `observer`.
    ReadOnly,
}

impl Access {
    /// Of the client that sent this request.
    pub fn from_request<T>(request: &Request<T>) -> Access {
        request.extensions().get().copied().unwrap_or_default()
    }
}

/// What the server shows and whom it takes; all in PEM.
#[derive(Clone)]
pub struct Tls {
    config: ServerTlsConfig,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// The server's certificate (chain) and its key. With `client_ca`, clients without a certificate that it signed
    /// are refused in the handshake; without, every client is taken.
    ///
    /// # Errors
    /// What is wrong with which of the three: no PEM, a key that is not the certificate's.
    pub fn new(cert: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Tls, String> {
        needs(cert, "CERTIFICATE", "certificate")?;
        needs(key, "PRIVATE KEY", "key")?;
        let mut config = ServerTlsConfig::new()
            .identity(Identity::from_pem(cert, key))
            .timeout(HANDSHAKE_TIMEOUT);
        if let Some(ca) = client_ca {
            needs(ca, "CERTIFICATE", "client CA")?;
            config = config.client_ca_root(Certificate::from_pem(ca));
        }
        Server::builder()
            .tls_config(config.clone())
            .map_err(|e| format!("certificate and key cannot be used: {}", whole(&e)))?;
        Ok(Tls { config })
    }

    pub(crate) fn config(&self) -> ServerTlsConfig {
        self.config.clone()
    }
}

fn needs(pem: &[u8], kind: &str, what: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(pem);
    let begins = |line: &str| line.starts_with("-----BEGIN ") && line.contains(kind);
    match text.lines().any(begins) {
        true => Ok(()),
        false => Err(format!("the {what} holds no PEM block of a {kind}")),
    }
}

/// An error with all that caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// What a request's client may do, by the certificate of its connection.
pub(crate) fn access_of(extensions: &Extensions) -> Access {
    let info = extensions.get::<TlsConnectInfo<Connection>>();
    let certs = info.and_then(TlsConnectInfo::peer_certs);
    certs
        .as_ref()
        .and_then(|certs| certs.first())
        .map_or(Access::Full, |cert| access(cert))
}

/// The refusal of a client that only reads.
pub(crate) fn read_only() -> Status {
    Status::permission_denied(
        "Read-only: the client's certificate has the organizational unit observer",
    )
}

/// What the holder of a certificate (DER) may do; one that cannot be read may only read.
fn access(cert: &[u8]) -> Access {
    let Ok(cert) = x509_cert::Certificate::from_der(cert) else {
        return Access::ReadOnly;
    };
    let names = cert.tbs_certificate.subject.0.iter();
    let mut units = names
        .flat_map(|name| name.0.iter())
        .filter(|attribute| attribute.oid == ORGANIZATIONAL_UNIT_NAME);
    match units.any(|unit| unit.value.value() == OBSERVER_UNIT) {
        true => Access::ReadOnly,
        false => Access::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pem_is_named() {
        let error = Tls::new(b"x", b"", None).unwrap_err();
        assert_eq!(error, "the certificate holds no PEM block of a CERTIFICATE");
        let cert = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error = Tls::new(cert, cert, None).unwrap_err();
        assert_eq!(error, "the key holds no PEM block of a PRIVATE KEY");
        let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let error = Tls::new(cert, key, None).unwrap_err();
        assert!(
            error.starts_with("certificate and key cannot be used: "),
            "{error}"
        );
    }

    #[test]
    fn a_certificate_that_cannot_be_read_only_reads() {
        assert_eq!(access(b"\x30\x00"), Access::ReadOnly);
    }
}
