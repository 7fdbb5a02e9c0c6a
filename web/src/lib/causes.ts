// Why something failed or waits, in words: what happened, what it means, what to do. Both apps use this table; a test
// compares it with net_error.hpp and with the enumerations of the API.

export interface Explanation {
  happened: string;
  means: string;
  advice: string;
}

/** Errors of an attempt without a response. */
export const netErrors: Record<string, Explanation> = {
  blocked: {
    happened: 'Not sent: the destination is not allowed.',
    means: 'The URL has a scheme, port or address that postrider does not call. Private addresses are closed by default.',
    advice: 'Use a public https:// address. Operators can open networks with allow_networks.',
  },
  name_not_found: {
    happened: 'The host name does not exist.',
    means: 'DNS has no address for it. Nothing was sent.',
    advice: 'Check the host name of the URL.',
  },
  name_lookup_failed: {
    happened: 'The DNS lookup of the host name failed.',
    means: 'The name servers did not give a usable answer. Nothing was sent.',
    advice: 'Usually temporary. If it lasts, the name servers of the host need attention.',
  },
  connection_refused: {
    happened: 'The connection was refused.',
    means: 'The host is there, but nothing listens on this port.',
    advice: 'Check that the receiving server runs, and that the port of the URL is right.',
  },
  connection_reset: {
    happened: 'The connection was reset.',
    means: 'The receiving server or something before it cut the connection.',
    advice: 'Look into the logs of the receiving server, its proxy or its firewall.',
  },
  connection_closed: {
    happened: 'The connection was closed before a response came.',
    means: 'The receiving server accepted the request and hung up.',
    advice: 'It may have crashed while it handled the request. Its logs at this time should tell.',
  },
  unreachable: {
    happened: 'There is no route to the host.',
    means: 'The network of the receiver, or the way to it, is down.',
    advice: 'Usually temporary. If it lasts, check the address that the host name resolves to.',
  },
  tls_expired: {
    happened: 'The certificate has expired.',
    means: 'Nothing was sent, because the server could not prove who it is.',
    advice: 'The receiver renews the certificate; retries then succeed by themselves.',
  },
  tls_wrong_host: {
    happened: 'The certificate is for another host name.',
    means: 'Nothing was sent, because the server could not prove who it is.',
    advice: 'Use the host name that is in the certificate, or add this one to it.',
  },
  tls_untrusted: {
    happened: 'The certificate is not trusted.',
    means: 'It is self-signed, or its issuer is unknown here. Often an intermediate certificate is missing.',
    advice: 'The receiver serves the full chain of a public authority. Operators can add one with extra_ca_file.',
  },
  tls_failed: {
    happened: 'The TLS handshake failed.',
    means: 'The two sides could not agree on a secure connection.',
    advice: 'Check that the port serves TLS 1.2 or newer.',
  },
  timeout_lookup: {
    happened: 'The DNS lookup took too long.',
    means: 'The time limit of the attempt passed before the host name was resolved.',
    advice: 'Usually temporary. If it lasts, the name servers of the host need attention.',
  },
  timeout_connect: {
    happened: 'The connection could not be opened in time.',
    means: 'Nothing answered at this address. Firewalls that drop packets look like this.',
    advice: 'Check that the receiver allows connections from the addresses of this service.',
  },
  timeout_tls: {
    happened: 'The TLS handshake took too long.',
    means: 'Connected, but the server did not finish the handshake within the time limit.',
    advice: 'The receiving server is overloaded, or the port does not serve TLS.',
  },
  timeout_send: {
    happened: 'The request could not be sent in time.',
    means: 'Connected, but the server stopped reading.',
    advice: 'The receiving server is overloaded.',
  },
  timeout_first_byte: {
    happened: 'Connected and sent, then no response came in time.',
    means: 'The receiving server probably does its work before it responds.',
    advice: 'Respond first, work later; or raise timeout_ms.',
  },
  timeout_response: {
    happened: 'The response began, but did not arrive in time.',
    means: 'The head of the response was not complete within the time limit.',
    advice: 'The receiving server is overloaded.',
  },
  not_http: {
    happened: 'The response is not HTTP.',
    means: 'Something answers on this port, but it is no web server.',
    advice: 'Check the port of the URL.',
  },
  head_too_large: {
    happened: 'The head of the response is too large.',
    means: 'The receiving server sent more headers than postrider reads.',
    advice: 'Have the receiver send fewer or smaller headers.',
  },
  local_failure: {
    happened: 'postrider itself could not send.',
    means: 'A resource of the node was exhausted or misconfigured. The receiver is not to blame.',
    advice: 'Operators: look into the log of the node.',
  },
  canceled: {
    happened: 'The attempt was interrupted.',
    means: 'The node was stopped while the request was in flight.',
    advice: 'Nothing to do: it is sent again.',
  },
};

const statusTexts: Record<number, [name: string, means: string, advice: string]> = {
  401: ['Unauthorized', 'The receiver wants other credentials, or rejects the signature.', 'Check the signing secret and custom headers on both sides.'],
  403: ['Forbidden', 'The receiver, or a firewall before it, rejects the request.', 'Check allow lists and the signing secret on the receiving side.'],
  404: ['Not Found', 'The host is right, the path is not.', 'Check the path of the URL.'],
  405: ['Method Not Allowed', 'The path exists, but it does not take POST.', 'Check the path of the URL, or allow POST there.'],
  408: ['Request Timeout', 'The receiving server gave up waiting for the request.', 'Usually overload on the receiving side.'],
  409: ['Conflict', 'The receiver cannot handle this event now.', 'It is retried.'],
  410: ['Gone', 'The receiver says that this address is closed for ever, so the endpoint was disabled.', 'If that is wrong: fix the receiver, send a test, resume the endpoint and replay what was missed.'],
  413: ['Content Too Large', 'The receiver, or a proxy before it, does not take a body of this size.', 'Raise the limit on the receiving side.'],
  415: ['Unsupported Media Type', 'The receiver does not take application/json.', 'Accept application/json on the receiving side.'],
  429: ['Too Many Requests', 'The receiver asks to be called less often.', 'Set rate_per_second of the endpoint to what it can take.'],
  500: ['Internal Server Error', 'The receiving server failed while it handled the request.', 'Its logs at this time should tell why.'],
  502: ['Bad Gateway', 'A proxy got no usable answer from the server behind it.', 'The receiving application is down or restarting.'],
  503: ['Service Unavailable', 'The receiver is overloaded or in maintenance.', 'Usually temporary.'],
  504: ['Gateway Timeout', 'A proxy waited too long for the server behind it.', 'Respond first, work later.'],
};

export function explainStatus(code: number): Explanation {
  const known = statusTexts[code];
  if (code >= 200 && code < 300)
    return { happened: `The receiver responded ${code}.`, means: 'The event was delivered.', advice: '' };
  const happened = `The receiver responded ${code}${known ? ` ${known[0]}` : ''}.`;
  if (known) return { happened, means: known[1], advice: known[2] };
  if (code < 400)
    return { happened, means: 'Redirects are not followed, and not retried by default.', advice: 'Use the final address as the URL.' };
  if (code < 500)
    return { happened, means: 'The receiver rejects the request. 4xx is not retried by default.', advice: 'Look into the logs of the receiving server.' };
  return { happened, means: 'The receiving server failed. It is retried.', advice: 'Look into the logs of the receiving server.' };
}

export function explainError(error: string | null | undefined, statusCode: number | null | undefined): Explanation | undefined {
  if (statusCode) return explainStatus(statusCode);
  if (!error) return undefined;
  return netErrors[error] ?? { happened: `The attempt failed: ${error}.`, means: '', advice: '' };
}

/** Why a delivery became a dead letter. */
export const causes: Record<string, { label: string; text: string }> = {
  rejected: { label: 'Rejected', text: 'The receiver rejected it. 3xx and 4xx responses are not retried, unless on_rejected of the endpoint says so.' },
  gone: { label: 'Gone', text: 'The receiver responded 410, so the endpoint was disabled. Nothing is queued for it since.' },
  exhausted: { label: 'Attempts exhausted', text: 'Every attempt failed, and max_attempts was reached.' },
  expired: { label: 'Expired', text: 'It was not delivered within give_up_seconds.' },
  blocked: { label: 'Blocked', text: 'The destination is not allowed, so nothing was sent.' },
  endpoint_disabled: { label: 'Endpoint disabled', text: 'The endpoint was disabled while this delivery was waiting.' },
};

/** Why an endpoint has no delivery of an event. */
export const unmatched: Record<string, string> = {
  endpoint_disabled: 'The endpoint was disabled when the event was published.',
  endpoint_created_later: 'The endpoint was created after the event was published.',
  subscribed_later: 'The endpoint subscribed to this type after the event was published.',
  version_not_wanted: 'Its subscription asks for a version that the event does not have.',
  subscription_off: 'Its subscription to this type is switched off.',
  no_subscription_matches: 'None of its subscriptions matches this type.',
  delivery_missing: 'It is subscribed, but fan-out is still running, or the history of the delivery was deleted.',
};

/** What a pending delivery waits for. */
export const waiting: Record<string, string> = {
  schedule: 'It waits for its retry schedule.',
  breaker: 'The breaker of the endpoint is open: after repeated failures, only single probes are sent until one succeeds.',
  rate: 'It waits for the rate limit.',
  in_flight_cap: 'As many deliveries as allowed are in flight to this endpoint.',
  strict_order: 'The endpoint receives events strictly in order, and an earlier one is not finished.',
  endpoint_paused: 'The endpoint is paused. Events queue until it is resumed.',
  tenant_paused: 'The tenant is paused. Events queue until it is resumed.',
  brake: 'Operators have pulled a brake for the whole cluster.',
  held: 'The endpoint is held: its secret or headers cannot be read.',
};
