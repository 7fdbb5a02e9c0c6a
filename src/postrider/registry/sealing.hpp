// Secrets and custom headers at rest. Each is sealed for its row: a secret for its endpoint and its own id,
// headers for their endpoint. A value copied to another row does not open there.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::registry {

struct CustomHeader {
  std::string name;
  std::string value;

  bool operator==(const CustomHeader&) const = default;
};
using CustomHeaders = std::vector<CustomHeader>;  // in the order they were given

// The keys that seal, and the endpoint they seal for.
struct Sealing {
  const crypto::MasterKeys& keys;
  model::EndpointId endpoint;

  std::string seal_secret(model::SecretId id, std::string_view secret) const;
  base::Result<std::string, crypto::OpenError> open_secret(model::SecretId id, std::string_view sealed) const;

  std::string seal_headers(const CustomHeaders& headers) const;
  base::Result<CustomHeaders, crypto::OpenError> open_headers(std::string_view sealed) const;
};

}  // namespace postrider::registry
