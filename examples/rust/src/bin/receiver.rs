//! Receives webhooks, verifies their signatures with the Standard Webhooks library, and prints each event once.
//!
//! usage: WEBHOOK_SECRET=whsec_… LISTEN=127.0.0.1:8000 receiver
use std::collections::HashSet;
use std::error::Error;
use std::io::Read;

use http::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::Webhook;
use tiny_http::{Request, Response, Server};

const MAX_BODY_BYTES: u64 = 1 << 20;

struct Receiver {
    webhook: Webhook,
    seen: HashSet<String>, // a table with a unique key in a real service
}

impl Receiver {
    /// The status of the response.
    fn receive(&mut self, request: &mut Request) -> u16 {
        let mut body = Vec::new();
        if request.as_reader().take(MAX_BODY_BYTES + 1).read_to_end(&mut body).is_err() {
            return 400;
        }
        if body.len() as u64 > MAX_BODY_BYTES {
            return 413;
        }
        let headers = header_map(request);
        if self.webhook.verify(&body, &headers).is_err() {
            return 401;
        }
        let Ok(event) = serde_json::from_slice::<serde_json::Value>(&body) else {
            return 400;
        };
        if let Some(Ok(id)) = headers.get("webhook-id").map(|id| id.to_str()) {
            self.process(id, &event);
        }
        204
    }

    /// An event can arrive more than once, always with the same ID.
    fn process(&mut self, id: &str, event: &serde_json::Value) {
        if self.seen.insert(id.to_string()) {
            println!("{id} {}", event["type"].as_str().unwrap_or(""));
        }
    }
}

fn header_map(request: &Request) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for header in request.headers() {
        let name = HeaderName::from_bytes(header.field.as_str().as_str().as_bytes());
        let value = HeaderValue::from_bytes(header.value.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut receiver = Receiver {
        webhook: Webhook::new(&std::env::var("WEBHOOK_SECRET")?)?,
        seen: HashSet::new(),
    };
    let server = Server::http(std::env::var("LISTEN")?)?;
    for mut request in server.incoming_requests() {
        let status = receiver.receive(&mut request);
        if let Err(error) = request.respond(Response::empty(status)) {
            eprintln!("cannot respond: {error}"); // the sender retries
        }
    }
    Ok(())
}
