#include "postrider/model/endpoint_enums.hpp"

#include <array>
#include <cstddef>

#include "postrider/base/check.hpp"

namespace postrider::model {

namespace {

// Each list is in the order of its enumerators.
constexpr std::array<std::string_view, 4> kEndpointStatuses{"active", "paused", "disabled", "deleted"};
constexpr std::array<std::string_view, 3> kTenantStatuses{"active", "paused", "deleted"};
constexpr std::array<std::string_view, 3> kActors{"customer", "operator", "postrider"};
constexpr std::array<std::string_view, 2> kOrderings{"none", "strict"};
constexpr std::array<std::string_view, 3> kOnRejected{"dead_letter", "retry", "pause"};

template <class Enum, size_t N>
std::string_view word(const std::array<std::string_view, N>& words, Enum value) {
  const auto index = static_cast<size_t>(value);
  CHECK(index < N);
  return words[index];
}

template <class Enum, size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& words, std::string_view text) {
  for (size_t i = 0; i < N; ++i)
    if (words[i] == text) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view label(EndpointStatus status) {
  return word(kEndpointStatuses, status);
}
std::string_view label(TenantStatus status) {
  return word(kTenantStatuses, status);
}
std::string_view label(Actor actor) {
  return word(kActors, actor);
}
std::string_view label(Ordering ordering) {
  return word(kOrderings, ordering);
}
std::string_view label(OnRejected on_rejected) {
  return word(kOnRejected, on_rejected);
}

std::optional<EndpointStatus> parse_endpoint_status(std::string_view text) {
  return find<EndpointStatus>(kEndpointStatuses, text);
}
std::optional<TenantStatus> parse_tenant_status(std::string_view text) {
  return find<TenantStatus>(kTenantStatuses, text);
}
std::optional<Actor> parse_actor(std::string_view text) {
  return find<Actor>(kActors, text);
}
std::optional<Ordering> parse_ordering(std::string_view text) {
  return find<Ordering>(kOrderings, text);
}
std::optional<OnRejected> parse_on_rejected(std::string_view text) {
  return find<OnRejected>(kOnRejected, text);
}

}  // namespace postrider::model
