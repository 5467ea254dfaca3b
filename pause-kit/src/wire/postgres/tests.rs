//! A stream means the same however much of it has come.

use std::time::Instant;

use proptest::prelude::*;

use super::{
    ClientMessage, Framed, Notice, Parameter, ServerMessage, TransactionStatus, answered, client_messages,
    server_messages, statements,
};
use crate::path::{Connection, ConnectionNumber, Direction, Mark};

fn framed(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut wire = vec![tag];
    wire.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    wire.extend_from_slice(body);
    wire
}

fn opening(code: u32, rest: &[u8]) -> Vec<u8> {
    let mut wire = u32::try_from(rest.len() + 8).unwrap().to_be_bytes().to_vec();
    wire.extend(code.to_be_bytes());
    wire.extend_from_slice(rest);
    wire
}

fn texts(texts: &[&str]) -> Vec<u8> {
    texts
        .iter()
        .flat_map(|text| [text.as_bytes(), &[0]].concat())
        .collect()
}

/// One format code for each parameter, as tokio-postgres and sqlx send it.
fn bind(portal: &str, statement: &str, parameters: &[Parameter]) -> Vec<u8> {
    let count = u16::try_from(parameters.len()).unwrap().to_be_bytes();
    let mut body = texts(&[portal, statement]);
    body.extend(count);
    for parameter in parameters {
        body.extend(u16::from(matches!(parameter, Parameter::Binary(_))).to_be_bytes());
    }
    body.extend(count);
    for parameter in parameters {
        let value = match parameter {
            Parameter::Null => {
                body.extend(u32::MAX.to_be_bytes());
                continue;
            }
            Parameter::Text(text) => text.as_bytes(),
            Parameter::Binary(bytes) => bytes,
        };
        body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend_from_slice(value);
    }
    body.extend(0_u16.to_be_bytes());
    framed(b'B', &body)
}

fn any_parameter() -> impl Strategy<Value = Parameter> {
    prop_oneof![
        Just(Parameter::Null),
        "[^\0]{0,12}".prop_map(Parameter::Text),
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(Parameter::Binary),
    ]
}

fn any_client_message() -> impl Strategy<Value = (ClientMessage, Vec<u8>)> {
    let text = || "[^\0]{0,20}";
    let bound = (text(), text(), proptest::collection::vec(any_parameter(), 0..4));
    prop_oneof![
        text().prop_map(|text| (ClientMessage::Query(text.clone()), framed(b'Q', &texts(&[&text])))),
        (text(), text()).prop_map(|(statement, text)| {
            let wire = framed(b'P', &[texts(&[&statement, &text]), vec![0, 0]].concat());
            (ClientMessage::Parse { statement, text }, wire)
        }),
        bound.prop_map(|(portal, statement, parameters)| {
            let wire = bind(&portal, &statement, &parameters);
            (
                ClientMessage::Bind {
                    portal,
                    statement,
                    parameters,
                },
                wire,
            )
        }),
        text().prop_map(|portal| {
            let wire = framed(b'E', &[texts(&[&portal]), vec![0; 4]].concat());
            (ClientMessage::Execute { portal }, wire)
        }),
        Just((ClientMessage::Sync, framed(b'S', b""))),
        Just((ClientMessage::Copy, framed(b'd', b"1\t2\n"))),
    ]
}

fn any_server_message() -> impl Strategy<Value = (ServerMessage, Vec<u8>)> {
    prop_oneof![
        "[^\0]{0,20}".prop_map(|tag| {
            let wire = framed(b'C', &texts(&[&tag]));
            (ServerMessage::CommandComplete(tag), wire)
        }),
        ("[0-9A-Z]{5}", "[^\0]{1,20}", proptest::option::of("[^\0]{1,20}")).prop_map(
            |(sqlstate, message, detail)| {
                let mut fields = vec!["SFEHLER".to_owned(), "VERROR".to_owned()];
                fields.extend([
                    format!("C{sqlstate}"),
                    format!("M{message}"),
                    "Fplpgsql.c".to_owned(),
                ]);
                fields.extend(detail.as_ref().map(|detail| format!("D{detail}")));
                let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
                let severity = "ERROR".to_owned();
                let notice = Notice {
                    severity,
                    sqlstate,
                    message,
                    detail,
                    hint: None,
                };
                (
                    ServerMessage::Error(notice),
                    framed(b'E', &[texts(&fields), vec![0]].concat()),
                )
            }
        ),
        Just((
            ServerMessage::Other(b'S'),
            framed(b'S', &texts(&["TimeZone", "UTC"]))
        )),
        Just((
            ServerMessage::Row(Some("x".to_owned())),
            framed(b'D', &[0, 1, 0, 0, 0, 1, b'x'])
        )),
        Just((
            ServerMessage::Row(None),
            framed(b'D', &[0, 1, 0xff, 0xff, 0xff, 0xff])
        )),
        Just((ServerMessage::Row(None), framed(b'D', &[0, 0]))),
        Just((ServerMessage::Other(b'T'), framed(b'T', &[0, 0]))),
        Just((
            ServerMessage::Ready(TransactionStatus::Failed),
            framed(b'Z', b"E")
        )),
    ]
}

fn start(encryption_requests: usize) -> Vec<u8> {
    let mut wire: Vec<u8> = (0..encryption_requests)
        .flat_map(|_| opening(80_877_103, b""))
        .collect();
    wire.extend(opening(
        196_608,
        &[texts(&["user", "app", "database", "paydb"]), vec![0]].concat(),
    ));
    wire
}

/// The messages must stand one after the other from the first byte on, and say what was sent.
fn equal<M: PartialEq + std::fmt::Debug>(messages: &[Framed<M>], sent: &[M], wire: &[u8]) {
    let mut end = 0;
    for (framed, message) in messages.iter().zip(sent) {
        assert_eq!((&framed.message, framed.range.start), (message, end));
        end = framed.range.end;
    }
    assert_eq!((messages.len(), end), (sent.len(), wire.len()));
}

proptest! {
    #[test]
    fn client_messages_cut_from_any_part_of_a_stream_equal_those_of_the_whole(
        encryption_requests in 0_usize..3,
        messages in proptest::collection::vec(any_client_message(), 0..6),
    ) {
        let mut sent = vec![ClientMessage::EncryptionRequest; encryption_requests];
        let parameters =
            [("user", "app"), ("database", "paydb")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        sent.push(ClientMessage::Startup { minor: 0, parameters: parameters.to_vec() });
        let mut wire = start(encryption_requests);
        for (message, bytes) in messages {
            sent.push(message);
            wire.extend(bytes);
        }
        let whole = client_messages(&wire, false).unwrap();
        equal(&whole.messages, &sent, &wire);
        for length in 0..=wire.len() {
            let part = client_messages(&wire[..length], false).unwrap();
            prop_assert_eq!(&part.messages[..], &whole.messages[..part.messages.len()]);
            let read = part.messages.last().map_or(0, |last| last.range.end);
            prop_assert_eq!(read + part.incomplete_bytes, length);
            prop_assert!(whole.messages.get(part.messages.len()).is_none_or(|next| next.range.end > length));
        }
    }

    #[test]
    fn server_messages_cut_from_any_part_of_a_stream_equal_those_of_the_whole(
        encryption_requests in 0_usize..3,
        messages in proptest::collection::vec(any_server_message(), 0..6),
    ) {
        let client = start(encryption_requests);
        let mut sent = vec![ServerMessage::EncryptionRefused; encryption_requests];
        let mut wire = vec![b'N'; encryption_requests];
        for (message, bytes) in messages {
            sent.push(message);
            wire.extend(bytes);
        }
        let whole = server_messages(&wire, &client).unwrap();
        equal(&whole.messages, &sent, &wire);
        for length in 0..=wire.len() {
            let part = server_messages(&wire[..length], &client).unwrap();
            prop_assert_eq!(&part.messages[..], &whole.messages[..part.messages.len()]);
            let read = part.messages.last().map_or(0, |last| last.range.end);
            prop_assert_eq!(read + part.incomplete_bytes, length);
        }
    }

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let started = [start(0), bytes.clone()].concat();
        let _ = (client_messages(&bytes, false), client_messages(&started, false));
        let _ = server_messages(&bytes, &started);
    }
}

#[test]
fn what_follows_an_accepted_encryption_is_not_read() {
    let client = [opening(80_877_103, b""), b"\x16\x03\x01secret".to_vec()].concat();
    let server = server_messages(b"S\x16\x03\x03", &client).unwrap();
    assert!(server.encrypted && server.messages.is_empty());
    let messages = client_messages(&client, server.encrypted).unwrap().messages;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].message, ClientMessage::EncryptionRequest);
}

#[test]
fn a_length_that_no_message_has_is_malformed_at_its_place() {
    let wire = [start(0), framed(b'S', b""), vec![b'Q', 0, 0, 0, 3]].concat();
    let malformed = client_messages(&wire, false).unwrap_err();
    assert_eq!(malformed.offset, wire.len() - 5);
    assert_eq!(
        malformed.to_string(),
        format!(
            "no PostgreSQL message at byte {}: a length out of range",
            wire.len() - 5
        )
    );
}

#[test]
fn integers_are_read_in_both_forms() {
    let token = 562_949_953_421_399_i64;
    assert_eq!(
        Parameter::Binary(token.to_be_bytes().to_vec()).as_integer(),
        Some(token)
    );
    assert_eq!(Parameter::Text(token.to_string()).as_integer(), Some(token));
    assert_eq!(
        Parameter::Binary(7_i32.to_be_bytes().to_vec()).as_integer(),
        Some(7)
    );
    assert_eq!(Parameter::Binary(vec![1, 2, 3]).as_integer(), None);
    assert_eq!(Parameter::Binary(b"acct-1".to_vec()).as_text(), Some("acct-1"));
    assert_eq!(Parameter::Null.as_text(), None);
}

/// A connection on which the client sent all of its bytes before the server answered.
fn spoken(client: Vec<u8>, server: Vec<u8>) -> Connection {
    let address = "127.0.0.1:5432".parse().unwrap();
    let mut connection = Connection::accepted(ConnectionNumber::from_index(0), address, address);
    for (direction, bytes) in [(Direction::ToResource, client), (Direction::ToHolder, server)] {
        let flow = connection.flow_mut(direction);
        let mark = Mark {
            end: bytes.len(),
            at: Instant::now(),
        };
        flow.bytes = bytes;
        flow.received.push(mark);
        flow.forwarded.push(mark);
    }
    connection
}

#[test]
fn of_statements_sent_together_the_one_whose_parameters_failed_is_charged_and_the_next_was_skipped() {
    let one = |text: &str| {
        let parse = framed(b'P', &[texts(&["", text]), vec![0, 0]].concat());
        let execute = framed(b'E', &[texts(&[""]), vec![0; 4]].concat());
        [parse, bind("", "", &[Parameter::Text("x".to_owned())]), execute].concat()
    };
    let client = [
        start(0),
        one("SELECT a($1)"),
        one("SELECT b($1)"),
        framed(b'S', b""),
    ]
    .concat();
    let error = framed(
        b'E',
        &[texts(&["VERROR", "C22P02", "Mno number"]), vec![0]].concat(),
    );
    let server = [framed(b'1', b""), error, framed(b'Z', b"I")].concat();
    let connection = spoken(client.clone(), server);
    let [first, second] = statements(&connection).unwrap().try_into().unwrap();
    assert_eq!(
        (first.text.as_str(), first.error().unwrap().sqlstate.as_str()),
        ("SELECT a($1)", "22P02")
    );
    assert_eq!(
        (second.text.as_str(), second.completions),
        ("SELECT b($1)", vec![])
    );
    assert!(first.ready.is_some() && second.ready == first.ready);
    assert!(answered(&connection));
    assert!(!answered(&spoken(client, framed(b'1', b""))));
}

#[test]
fn a_server_that_waits_for_copy_data_owes_its_gone_client_nothing() {
    let client = [start(0), framed(b'Q', &texts(&["COPY t FROM STDIN"]))].concat();
    let asks = framed(b'G', &[0, 0, 0]);
    assert!(answered(&spoken(client.clone(), asks.clone())));
    let failed = [asks, framed(b'E', &[texts(&["C57014"]), vec![0]].concat())].concat();
    assert!(!answered(&spoken(client.clone(), failed.clone())));
    assert!(answered(&spoken(client, [failed, framed(b'Z', b"I")].concat())));
}
