// Signatures of providers that send webhooks to postrider: Stripe, GitHub, Shopify, Slack and Svix.
#pragma once

#include <optional>
#include <string>

#include "postrider/cli/verify.hpp"
#include "postrider/inbox/provider.hpp"

namespace postrider::cli {

// By --scheme, or by a header that only this provider sends.
std::optional<inbox::Provider> provider_of(const SignedRequest& request);
SignatureReport verify_provider(const SignedRequest& request, inbox::Provider provider);

}  // namespace postrider::cli
