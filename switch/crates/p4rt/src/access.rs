// SPDX-License-Identifier: Apache-2.0
//! What a client may do by its certificate: an extension of each request, for all services of the address.

use tonic::Request;

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
