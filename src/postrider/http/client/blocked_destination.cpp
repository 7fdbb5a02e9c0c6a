#include "postrider/http/client/blocked_destination.hpp"

#include <array>
#include <utility>

#include "postrider/http/net_error.hpp"

namespace postrider::http {

namespace {

using Reason = BlockedReason;

struct TypedReason {
  Reason reason;
  std::string_view sentence;
};

// Only from the text of a URL. Never mentions that an address belongs to this machine, because
// that would reveal where postrider runs.
constexpr std::array<TypedReason, 9> kTypedReasons{{
    {Reason::plain_http, "http:// is not allowed, only https://"},
    {Reason::port, "the port is not allowed"},
    {Reason::loopback, "the address is a loopback address"},
    {Reason::private_network, "the address is in a private network"},
    {Reason::link_local, "the address is link-local"},
    {Reason::special_purpose, "the address is reserved for special purposes"},
    {Reason::multicast, "the address is multicast"},
    {Reason::metadata_service, "the address is a cloud provider's metadata service"},
    {Reason::own_address, "the address is not allowed"},
}};

std::string bare() {
  return std::string(describe(NetError::blocked));
}

std::string with(std::string_view sentence) {
  return bare() + ": " + std::string(sentence);
}

// Scheme, port and literal addresses; problems with names are not checked.
bool is_typed(const BlockedDestination& blocked) {
  const bool is_about_text = blocked.reason == Reason::plain_http || blocked.reason == Reason::port;
  return is_about_text || !blocked.is_name;
}

std::string for_operators(const BlockedDestination& blocked) {
  if (!blocked.resolved || is_typed(blocked)) return with(describe(blocked.reason));
  return with(blocked.host + " resolves to " + blocked.resolved->to_string() + "; " +
              std::string(describe(blocked.reason)));
}

std::string for_customers(const BlockedDestination& blocked) {
  if (!is_typed(blocked)) return bare();
  for (const TypedReason& typed : kTypedReasons)
    if (typed.reason == blocked.reason) return with(typed.sentence);
  return bare();
}

}  // namespace

std::string describe(const BlockedDestination& blocked, Audience audience) {
  return audience == Audience::operators ? for_operators(blocked) : for_customers(blocked);
}

std::string shown_to(Audience audience, std::string detail) {
  if (audience == Audience::operators || !detail.starts_with(bare())) return detail;
  // Only the sentences about a URL's text are known here; one about a name is none of them.
  for (const TypedReason& typed : kTypedReasons)
    if (detail == with(describe(typed.reason))) return with(typed.sentence);
  return bare();
}

}  // namespace postrider::http
