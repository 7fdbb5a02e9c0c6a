// The dependencies of changes to the registry, besides a connection.
#pragma once

#include "postrider/crypto/master_keys.hpp"
#include "postrider/model/id_source.hpp"
#include "postrider/registry/secret_reference.hpp"

namespace postrider::registry {

struct Context {
  const crypto::MasterKeys& keys;
  model::IdSource& ids;
  int buckets;                                  // of the schema, see read_buckets()
  int endpoints_max = 50;                       // per tenant, unless the tenant says otherwise
  const ReferencePolicy* references = nullptr;  // none: secrets are never references
};

}  // namespace postrider::registry
