// cargo add standardwebhooks http
use http::HeaderMap;
use standardwebhooks::Webhook;

/// Respond 401 if this is false. The body is what was received, not parsed JSON.
pub fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> bool {
    Webhook::new(secret).is_ok_and(|webhook| webhook.verify(body, headers).is_ok())
}
