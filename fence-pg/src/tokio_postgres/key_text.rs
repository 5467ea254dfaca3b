//! A key as a parameter.

use std::error::Error;

use ::tokio_postgres::types::private::BytesMut;
use ::tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// A key's canonical text, sent in text form, so that the server reads it as whatever type the key column has.
#[derive(Debug)]
pub(super) struct KeyText<'a>(pub(super) &'a str);

impl ToSql for KeyText<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// Keys' canonical texts as an array in text form, so that the server reads them as an array of the key column's type.
#[derive(Debug)]
pub(super) struct KeyTexts(String);

impl KeyTexts {
    pub(super) fn new<'a>(keys: impl Iterator<Item = &'a str>) -> KeyTexts {
        let quoted: Vec<String> = keys
            .map(|key| format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\"")))
            .collect();
        KeyTexts(format!("{{{}}}", quoted.join(",")))
    }
}

impl ToSql for KeyTexts {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}
