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
