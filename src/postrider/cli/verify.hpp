// Checks the signature of a webhook and tries what commonly goes wrong. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/crypto/signing_key.hpp"

namespace postrider::cli {

struct SignedRequest {
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string secret;  // whsec_…, whpk_… or whsk_…, or the plain secret of the hex schemes
  std::optional<crypto::SignatureScheme> scheme{};  // none: detected from the headers
  std::optional<std::string> provider{};            // instead: stripe, github, shopify, slack or svix
  int64_t now = 0;                                  // unix seconds
  int64_t tolerance_seconds = 300;
};

struct SignatureReport {
  bool is_valid = false;
  std::string scheme;
  std::vector<std::string> findings;  // sentences about errors
};
SignatureReport verify_signature(const SignedRequest& request);

}  // namespace postrider::cli
