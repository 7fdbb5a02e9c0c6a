// Everything that can keep an exchange from getting an HTTP response. A closed list: the names are stored.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace postrider::http {

enum class NetError : uint8_t {
  blocked,  // by the AddressGuard; nothing was dialled
  name_not_found,
  name_lookup_failed,
  connection_refused,
  connection_reset,
  connection_closed,  // before a complete response head
  unreachable,        // no route, network down
  tls_expired,
  tls_wrong_host,
  tls_untrusted,
  tls_failed,
  timeout_lookup,
  timeout_connect,
  timeout_tls,
  timeout_send,
  timeout_first_byte,
  timeout_response,  // inside the response head; a complete head always counts as a response
  not_http,
  head_too_large,
  local_failure,  // postrider's own machine: no descriptors, bad bind address
  canceled,       // Client::close()
};
inline constexpr size_t kNetErrorCount = 21;

std::string_view to_string(NetError error);  // the enumerator's name
std::optional<NetError> net_error_from(std::string_view name);
// The general sentence, e.g. "timed out while connecting". A failure carries a more specific one if there is
// one.
std::string_view describe(NetError error);

}  // namespace postrider::http
