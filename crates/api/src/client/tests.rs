use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;

use crate::{Counters, Weights};

use super::*;

/// Asks a server that gives `answers`, one to each connection.
fn asked(answers: Vec<String>, ask: impl AsyncFnOnce(&mut Client)) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(answer.as_bytes()).unwrap();
            // A socket closed with a body unread resets its peer.
            stream.shutdown(Shutdown::Write).unwrap();
            std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(ask(&mut Client::new(&socket)));
    drop(runtime);
    server.join().unwrap();
}

#[test]
fn a_name_is_one_segment() {
    assert_eq!(segment("wifi-2.4_a~"), "wifi-2.4_a~");
    assert_eq!(segment("a b/\u{e9}%"), "a%20b%2F%C3%A9%25");
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[test]
fn answers_are_read_and_a_closed_connection_is_opened_again() {
    let seven = answer("200 OK", "{\"t_ns\": 7, \"counters\": {}}");
    asked(vec![seven.clone(), seven], async |client| {
        for _ in 0..2 {
            let c: Counters = client.get("/v1/counters").await.unwrap();
            assert_eq!(c.t_ns, 7);
        }
    });
}

#[test]
fn a_refusal_keeps_the_words_of_the_end() {
    let refusal = answer("404 Not Found", "{\"error\": \"no access \\\"x\\\"\"}");
    asked(vec![refusal], async |client| {
        let e = client
            .put("/v1/weights", &Weights::default())
            .await
            .unwrap_err();
        match &e {
            Error::Refused { status, text, .. } => {
                assert_eq!((*status, &**text), (404, "no access \"x\""));
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn what_is_not_the_api_is_said() {
    asked(vec!["SSH-2.0-OpenSSH_9.2\r\n\r\n".into()], async |client| {
        let e = client.get::<Counters>("/v1/counters").await.unwrap_err();
        assert!(matches!(e, Error::Broken { .. }), "{e}");
    });
    asked(vec![answer("200 OK", "[]")], async |client| {
        let e = client
            .put_for::<_, Counters>("/v1/x", &1)
            .await
            .unwrap_err();
        assert!(e.to_string().starts_with("understand the answer"), "{e}");
    });
}

#[test]
fn a_path_that_http_cannot_carry_is_refused_unasked() {
    let e = asked_of_nobody("/v1/x y");
    assert!(matches!(e, Error::Path { .. }), "{e}");
}

#[test]
fn an_end_that_is_not_there_is_said() {
    let e = asked_of_nobody("/v1/counters").to_string();
    assert!(e.contains("nobody serves"), "{e}");
}

fn asked_of_nobody(path: &str) -> Error {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(Client::new(Path::new("/nonexistent/s")).get::<Counters>(path))
        .unwrap_err()
}
