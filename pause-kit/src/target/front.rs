//! The resource's front door, for the kit's own requests.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Template;

/// How the kit itself writes, raises and reads through the resource's HTTP interface, as any client would.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// One guarded write; the kit adds `Fencing-Token`.
    pub write: RequestForm,
    /// Raises the mark and writes nothing; the kit adds `Fencing-Token`.
    pub raise: RequestForm,
}

/// One HTTP request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestForm {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, from `/` on.
    pub path: Template,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<String, Template>,
    /// The body, sent as `application/json`; none when left out.
    pub body: Option<Template>,
}
