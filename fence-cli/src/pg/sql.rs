//! SQL as it is sent and as `--dry-run` prints it: the same text.

/// A text as a literal, whatever the server's settings are.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// Texts as an array of names.
pub(crate) fn names<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let literals: Vec<String> = texts.into_iter().map(|text| literal(text)).collect();
    format!("ARRAY[{}]::name[]", literals.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_literal() {
        assert_eq!(literal("orders"), "'orders'");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        assert_eq!(
            names(&["id".to_owned(), "o'k".to_owned()]),
            "ARRAY['id', 'o''k']::name[]"
        );
    }
}
