#include "postrider/registry/audience.hpp"

#include <utility>

#include "postrider/http/net_error.hpp"

namespace postrider::registry {

using http::Audience;
using http::NetError;

Audience audience_of(const Principal& reader) {
  return reader.is_bound() ? Audience::customers : Audience::operators;
}

std::optional<std::string> shown_error(Audience audience, std::optional<std::string> detail) {
  if (!detail) return std::nullopt;
  // Otherwise the rest names the person who canceled it and the reason.
  const bool is_by_retention = detail->starts_with("canceled by retention ");
  if (audience == Audience::customers && detail->starts_with("canceled by ") && !is_by_retention)
    return "canceled by hand";
  return http::shown_to(audience, std::move(*detail));
}

std::optional<std::string> shown_error(Audience audience, const std::optional<std::string>& error,
                                       std::optional<std::string> detail) {
  // Errors on this side show details of this machine.
  if (audience == Audience::customers && error == http::to_string(NetError::local_failure))
    return std::string(http::describe(NetError::local_failure));
  return shown_error(audience, std::move(detail));
}

std::optional<std::string> shown_held_reason(Audience audience, std::optional<std::string> reason) {
  if (audience == Audience::customers && reason) return "the secret cannot be read at the moment";
  return reason;
}

std::optional<std::string> shown_to_operators(Audience audience, std::optional<std::string> value) {
  if (audience == Audience::customers) return std::nullopt;
  return value;
}

}  // namespace postrider::registry
