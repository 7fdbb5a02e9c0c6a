use openssl::{base64, hash::MessageDigest, memcmp, pkey::PKey, sign::Signer};
use std::time::{SystemTime, UNIX_EPOCH};

const TOLERANCE_SECONDS: u64 = 300;

/// Respond 401 if this is false. The body is what was received, not parsed JSON; `header` looks up a header by name.
pub fn verify<'a>(secret: &str, header: impl Fn(&str) -> Option<&'a str>, body: &[u8]) -> bool {
    check(secret, header, body).unwrap_or(false)
}

/// None if a header is missing or malformed.
fn check<'a>(secret: &str, header: impl Fn(&str) -> Option<&'a str>, body: &[u8]) -> Option<bool> {
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let signatures = header("webhook-signature")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    if now.abs_diff(timestamp.parse().ok()?) > TOLERANCE_SECONDS {
        return Some(false);
    }
    let key = PKey::hmac(&base64::decode_block(secret.trim_start_matches("whsec_")).ok()?).ok()?;
    let mut signer = Signer::new(MessageDigest::sha256(), &key).ok()?;
    signer.update(format!("{id}.{timestamp}.").as_bytes()).ok()?;
    signer.update(body).ok()?;
    let expected = format!("v1,{}", base64::encode_block(&signer.sign_to_vec().ok()?));
    let is_match = |given: &str| given.len() == expected.len() && memcmp::eq(given.as_bytes(), expected.as_bytes());
    Some(signatures.split(' ').any(is_match)) // several during a rotation
}
