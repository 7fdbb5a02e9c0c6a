#include "postrider/inbox/twilio.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/pick.hpp"

namespace postrider::inbox {

namespace {

// Twilio may have signed the URL with its default port or without; both say the same.
std::vector<std::string> spellings(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return {url};
  const std::string port = url.starts_with("https") ? ":443" : ":80";
  const size_t host_end = std::min(url.find_first_of("/?", scheme + 3), url.size());
  const std::string_view authority(url.data(), host_end);
  const std::string rest = url.substr(host_end);
  if (authority.ends_with(port)) return {url, url.substr(0, host_end - port.size()) + rest};
  const bool has_port =
      authority.find(':', scheme + 3) != std::string_view::npos && !authority.ends_with(']');
  if (has_port) return {url};
  return {url, std::string(authority) + port + rest};
}

// Names in order, of each the values in order and only once, all one behind the other.
std::string joined(const std::vector<http::Parameter>& parameters) {
  std::map<std::string_view, std::set<std::string_view>> sorted;
  for (const auto& parameter : parameters) sorted[parameter.name].insert(parameter.value);
  std::string text;
  for (const auto& [name, values] : sorted)
    for (const auto value : values) text.append(name).append(value);
  return text;
}

// The hash in the URL's query that stands for a body that is no form.
std::optional<std::string> body_hash_in(std::string_view url) {
  const size_t query = url.find('?');
  if (query == std::string_view::npos) return std::nullopt;
  const auto parameters = http::parse_query(url.substr(query + 1));
  if (!parameters) return std::nullopt;
  for (const auto& parameter : *parameters)
    if (parameter.name == "bodySHA256") return parameter.value;
  return std::nullopt;
}

bool matches_any(std::span<const VerifyKey> keys, std::string_view signature, const std::string& public_url,
                 const std::string& parameters) {
  bool matches = false;
  for (const VerifyKey& key : keys)
    for (const std::string& url : spellings(public_url)) {
      const auto wanted = base::base64_encode(crypto::hmac_sha1(key.bytes, {url, parameters}).view());
      matches |= crypto::constant_time_equal(signature, wanted);
    }
  return matches;
}

}  // namespace

std::optional<std::string> twilio_parameters(const Arrival& arrival) {
  if (body_hash_in(arrival.public_url)) return "";
  const auto form = form_of(arrival);
  if (!form) return std::nullopt;
  return joined(*form);
}

std::optional<InboundRejection> verify_twilio(std::span<const VerifyKey> keys, const Arrival& arrival) {
  const auto signature = arrival.header("x-twilio-signature");
  if (!signature)
    return InboundRejection{RejectReason::missing_header, "there is no x-twilio-signature header"};
  const auto parameters = twilio_parameters(arrival);
  if (!parameters)
    return InboundRejection{RejectReason::malformed_body,
                            "the body is not a form, and the URL has no bodySHA256"};
  if (!matches_any(keys, *signature, arrival.public_url, *parameters))
    return InboundRejection{RejectReason::signature_mismatch,
                            "no active secret matches for " +
                                arrival.public_url.substr(0, arrival.public_url.find('?')) +
                                "; check that public_url is the URL that Twilio calls"};
  // Only now is the body worth a pass over it.
  const auto body_hash = body_hash_in(arrival.public_url);
  if (body_hash &&
      !crypto::constant_time_equal(*body_hash, base::hex_encode(crypto::sha256(arrival.body).view())))
    return InboundRejection{RejectReason::signature_mismatch, "the body does not match bodySHA256"};
  return std::nullopt;
}

}  // namespace postrider::inbox
