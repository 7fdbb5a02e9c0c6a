// Secrets of an endpoint: one current, and older ones while a rotation's overlap lasts.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/crypto/signing_key.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/context.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/registry/subscriptions.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

// Active at once; a rotation beyond that is rejected until an overlap has ended.
inline constexpr size_t secrets_max = 5;

struct Secret {
  model::SecretId id;
  std::optional<std::string> masked;      // no value if no configured master key decrypts it
  std::optional<std::string> reference;   // where it is kept, instead
  std::optional<std::string> public_key;  // of an asymmetric scheme
  base::Timestamp created_at{};
  std::optional<base::Timestamp> expires_at;  // none: the current one
};

// The current one first, then from the newest to the oldest.
runtime::Task<base::Result<std::vector<Secret>, Rejection>> list_secrets(pg::Link& link,
                                                                         const Context& context,
                                                                         EndpointRef ref);

struct Rotation {
  std::chrono::seconds overlap{86'400};
  std::optional<std::string> secret;  // made if not given
};
struct RotatedSecret {
  Secret secret;
  std::string text;  // text form, shown only now
};
runtime::Task<base::Result<RotatedSecret, Rejection>> rotate_secret(pg::Link& link, const Context& context,
                                                                    const Caller& caller, EndpointRef ref,
                                                                    Rotation rotation);

// Ends an overlap at once.
runtime::Task<std::optional<Rejection>> delete_secret(pg::Link& link, const Caller& caller, EndpointRef ref,
                                                      model::SecretId secret);

}  // namespace postrider::registry
