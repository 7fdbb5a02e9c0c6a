#include "postrider/http/net_error.hpp"

namespace postrider::http {

namespace {

struct Words {
  NetError error;
  std::string_view name;
  std::string_view sentence;
};

constexpr Words kAllWords[] = {
    {NetError::blocked, "blocked", "destination not allowed"},
    {NetError::name_not_found, "name_not_found", "name not found"},
    {NetError::name_lookup_failed, "name_lookup_failed", "the name could not be looked up"},
    {NetError::connection_refused, "connection_refused", "connection refused"},
    {NetError::connection_reset, "connection_reset", "connection reset"},
    {NetError::connection_closed, "connection_closed", "connection closed before a response"},
    {NetError::unreachable, "unreachable", "host or network unreachable"},
    {NetError::tls_expired, "tls_expired", "TLS certificate expired or not yet valid"},
    {NetError::tls_wrong_host, "tls_wrong_host", "TLS certificate is for another host"},
    {NetError::tls_untrusted, "tls_untrusted", "TLS certificate signed by unknown authority"},
    {NetError::tls_failed, "tls_failed", "TLS handshake failed"},
    {NetError::timeout_lookup, "timeout_lookup", "timed out while looking up the name"},
    {NetError::timeout_connect, "timeout_connect", "timed out while connecting"},
    {NetError::timeout_tls, "timeout_tls", "timed out in the TLS handshake"},
    {NetError::timeout_send, "timeout_send", "timed out while sending the request"},
    {NetError::timeout_first_byte, "timeout_first_byte", "timed out while waiting for the first byte"},
    {NetError::timeout_response, "timeout_response", "timed out while reading the response"},
    {NetError::not_http, "not_http", "response is not HTTP"},
    {NetError::head_too_large, "head_too_large", "response head too large"},
    {NetError::local_failure, "local_failure", "postrider could not open a connection"},
    {NetError::canceled, "canceled", "canceled because postrider is stopping"},
};
static_assert(std::size(kAllWords) == kNetErrorCount);

const Words& words_of(NetError error) {
  return kAllWords[static_cast<size_t>(error)];
}

}  // namespace

std::string_view to_string(NetError error) {
  return words_of(error).name;
}
std::string_view describe(NetError error) {
  return words_of(error).sentence;
}

std::optional<NetError> net_error_from(std::string_view name) {
  for (const Words& words : kAllWords)
    if (words.name == name) return words.error;
  return std::nullopt;
}

}  // namespace postrider::http
