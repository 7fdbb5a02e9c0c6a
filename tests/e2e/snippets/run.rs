//! Both variants: the feature `library` selects the one with the Standard Webhooks library.
use openssl::base64::decode_block;
use std::collections::HashMap;

#[cfg(feature = "library")]
#[path = "library.rs"]
mod webhook;
#[cfg(not(feature = "library"))]
#[path = "verify.rs"]
mod webhook;

#[cfg(feature = "library")]
fn call(secret: &str, given: &HashMap<&'static str, String>, body: &[u8]) -> bool {
    let mut headers = http::HeaderMap::new();
    for (name, value) in given {
        headers.insert(*name, value.parse().expect("a header"));
    }
    webhook::verify(secret, &headers, body)
}

#[cfg(not(feature = "library"))]
fn call(secret: &str, given: &HashMap<&'static str, String>, body: &[u8]) -> bool {
    webhook::verify(secret, |name| given.get(name).map(String::as_str), body)
}

fn text(field: &str) -> String {
    String::from_utf8(decode_block(field).expect("base64")).expect("UTF-8")
}

fn main() {
    for line in std::io::stdin().lines().map(|line| line.expect("a line")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
        let given = names.iter().zip(&fields[1..4]).filter(|(_, field)| **field != "-");
        let headers = given.map(|(name, field)| (*name, text(field))).collect();
        println!("{}", call(&text(fields[0]), &headers, &decode_block(fields[4]).expect("base64")));
    }
}
