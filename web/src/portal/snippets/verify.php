<?php
const TOLERANCE_SECONDS = 300;

/** Respond 401 if verify($secret, getallheaders(), file_get_contents('php://input')) is false. */
function verify(string $secret, array $headers, string $body): bool
{
    $headers = array_change_key_case($headers);
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    $signatures = $headers['webhook-signature'] ?? '';
    if ($id === '' || !ctype_digit($timestamp) || abs(time() - (int) $timestamp) > TOLERANCE_SECONDS) {
        return false;
    }
    $key = base64_decode(str_replace('whsec_', '', $secret));
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) { // several while the secret is being rotated; one match is enough
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}
