// The closed word lists of tenants and endpoints, spelled as in SQL and in the API.
#pragma once

#include <optional>
#include <string_view>

namespace postrider::model {

enum class EndpointStatus { active, paused, disabled, deleted };
enum class TenantStatus { active, paused, deleted };
// The actor: a key that is bound to a tenant acts for the customer, every other person or program for the
// operator.
enum class Actor { customer, operator_, postrider };
enum class Ordering { none, strict };
// The treatment of 3xx, and of 4xx that are not known to be temporary.
enum class OnRejected { dead_letter, retry, pause };

std::string_view label(EndpointStatus status);
std::string_view label(TenantStatus status);
std::string_view label(Actor actor);  // "operator"
std::string_view label(Ordering ordering);
std::string_view label(OnRejected on_rejected);

std::optional<EndpointStatus> parse_endpoint_status(std::string_view text);
std::optional<TenantStatus> parse_tenant_status(std::string_view text);
std::optional<Actor> parse_actor(std::string_view text);
std::optional<Ordering> parse_ordering(std::string_view text);
std::optional<OnRejected> parse_on_rejected(std::string_view text);

}  // namespace postrider::model
