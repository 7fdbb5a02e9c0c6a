// A secret that is stored outside the database: `file:/path`, `env:NAME` or `exec:/program argument`. The
// database has the reference; the node that sends resolves it.
//
// A reference makes postrider read a file, a variable or the output of a program, and sign with it. So each
// kind is off until the operator allows it, and then only for the listed paths and names. Keys that are bound
// to a tenant may not write references, or one tenant could sign with the secret of another.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/crypto/signing_key.hpp"

namespace postrider::registry {

struct ReferencePolicy {
  std::vector<std::string> directories;  // files must be below one of them
  std::string environment_prefix;        // variables must begin with it; empty: none may be read
  std::vector<std::string> programs;     // absolute paths
  std::chrono::milliseconds timeout{5'000};
};

// By its form, whatever the policy is: a plain secret must not have this form.
bool is_reference(std::string_view secret);

// The reason why the reference may not be used, as a sentence after "the secret", or no value. Pure, no file
// is touched.
std::optional<std::string> why_not(const ReferencePolicy& policy, std::string_view reference);

// The reason why a text cannot be a secret of that scheme, as a sentence after "the secret": its form, or the
// policy if it is a reference (null: none are allowed). No value if it can.
std::optional<std::string> why_not_secret(const ReferencePolicy* policy, crypto::SignatureScheme scheme,
                                          std::string_view secret);

// The secret itself, trimmed. Checks the policy again, on the file that is really there. Blocking; any
// thread. The failure never contains data that was read.
base::Result<std::string, std::string> resolve(const ReferencePolicy& policy, std::string_view reference);

}  // namespace postrider::registry
