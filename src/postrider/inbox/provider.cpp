#include "postrider/inbox/provider.hpp"

#include <array>
#include <utility>

namespace postrider::inbox {

namespace {

constexpr std::array<std::pair<Provider, std::string_view>, 8> kLabels{{
    {Provider::standard, "standard"},
    {Provider::svix, "svix"},
    {Provider::stripe, "stripe"},
    {Provider::github, "github"},
    {Provider::shopify, "shopify"},
    {Provider::slack, "slack"},
    {Provider::twilio, "twilio"},
    {Provider::hmac, "hmac"},
}};

}  // namespace

std::string_view label(Provider provider) {
  return kLabels[static_cast<size_t>(provider)].second;
}

std::optional<Provider> parse_provider(std::string_view text) {
  for (const auto& [provider, word] : kLabels)
    if (word == text) return provider;
  return std::nullopt;
}

std::string_view label(Deduplicate deduplicate) {
  return deduplicate == Deduplicate::content ? "content" : "id";
}

std::optional<Deduplicate> parse_deduplicate(std::string_view text) {
  if (text == "content") return Deduplicate::content;
  if (text == "id") return Deduplicate::id;
  return std::nullopt;
}

Deduplicate default_deduplicate(Provider provider, const std::optional<std::string>& idempotency_key) {
  if (provider == Provider::hmac) return Deduplicate::id;
  const bool signs_id_header = provider == Provider::standard || provider == Provider::svix;
  if (!idempotency_key && signs_id_header) return Deduplicate::id;
  // Every scheme signs the body, so an id in it is signed.
  const std::string_view where =
      idempotency_key ? std::string_view(*idempotency_key) : traits(provider).idempotency_keys.front();
  return where.starts_with('/') ? Deduplicate::id : Deduplicate::content;
}

const ProviderTraits& traits(Provider provider) {
  static const std::array<ProviderTraits, 8> all{{
      {{"webhook-id"}, "webhook-signature", {"webhook-"}, true},
      {{"svix-id", "webhook-id"}, "svix-signature", {"svix-", "webhook-"}, true},
      {{"/id"}, "stripe-signature", {"stripe-"}, false},
      {{"x-github-delivery"}, "x-hub-signature-256", {"x-github-", "x-hub-"}, true},
      {{"x-shopify-webhook-id"}, "x-shopify-hmac-sha256", {"x-shopify-"}, false},
      {{"/event_id"}, "x-slack-signature", {"x-slack-"}, false},
      {{"i-twilio-idempotency-token"}, "x-twilio-signature", {"x-twilio-", "i-twilio-"}, false},
      {{}, "", {}, true},
  }};
  return all[static_cast<size_t>(provider)];
}

}  // namespace postrider::inbox
