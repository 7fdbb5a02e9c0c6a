// The known senders of inbound webhooks, and their properties.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace postrider::inbox {

enum class Provider { standard, svix, stripe, github, shopify, slack, twilio, hmac };

std::string_view label(Provider provider);  // as in the API and the database
std::optional<Provider> parse_provider(std::string_view text);
inline constexpr std::string_view provider_choices =
    "standard, svix, stripe, github, shopify, slack, twilio, hmac";

struct ProviderTraits {
  // Where a message's own id is, in order of preference: a header's name, or a JSON pointer into the body.
  std::vector<std::string_view> idempotency_keys;
  std::string_view signature_header;
  std::vector<std::string_view> header_prefixes;  // headers that matter begin so; lower case
  bool makes_secret;  // the receiver may choose the secret; otherwise the provider hands it out
};
const ProviderTraits& traits(Provider provider);

// How duplicates are recognised.
enum class Deduplicate {
  id,       // by its idempotency key alone
  content,  // also by the signed content: a recorded request is the same message under any unsigned ID
};
std::string_view label(Deduplicate deduplicate);
std::optional<Deduplicate> parse_deduplicate(std::string_view text);

// By content where the id can be changed without breaking the signature. `idempotency_key` is the source's
// own, if it has one. Generic sources keep to the id: equal bodies are common there.
Deduplicate default_deduplicate(Provider provider, const std::optional<std::string>& idempotency_key);

}  // namespace postrider::inbox
