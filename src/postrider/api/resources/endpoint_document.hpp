// Endpoints as JSON, in requests and responses.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "postrider/api/wire/problems.hpp"
#include "postrider/config/config.hpp"
#include "postrider/crypto/master_keys.hpp"
#include "postrider/http/client/blocked_destination.hpp"
#include "postrider/http/client/guard.hpp"
#include "postrider/http/url.hpp"
#include "postrider/registry/endpoints.hpp"

namespace postrider::api {

// The rules that a document must follow.
struct EndpointRules {
  const config::Config& config;  // limits and defaults
  const http::AddressGuard& guard;
  const registry::ReferencePolicy* references = nullptr;  // none: a secret must not be a reference
  http::Audience audience = http::Audience::customers;    // the reader of the reason for a blocked URL
  std::optional<double> rate_per_second_max{};            // what "no limit" means to this caller
  std::vector<base::Network> allow_networks{};            // that apply besides those of the document
};

// Settings as they are when nothing is given.
registry::EndpointSettings default_settings(const config::Config& config);

enum class DocumentKind {
  whole,  // POST and PUT: url and event_types are required, `secret` is allowed
  patch,  // missing fields stay unchanged
};

// Reads the fields that are there into the draft; unknown fields and bad values become problems.
struct EndpointDocument {
  DocumentKind kind = DocumentKind::whole;
  registry::EndpointDraft draft;
  std::optional<std::string> secret;
  std::optional<http::Url> url;  // when the document has one of the right form

  void read(const boost::json::object& document, const EndpointRules& rules, FieldProblems& problems);
  // Which addresses the URL may lead to.
  http::AddressGuard guard(const EndpointRules& rules) const;
};

// The reader, and the key with which the names of custom headers are opened.
struct EndpointReader {
  http::Audience audience;
  const crypto::MasterKeys& keys;
  std::chrono::seconds disable_after;
};
// `secret` is shown where the endpoint was just made.
std::string endpoint_json(const registry::Endpoint& endpoint, const EndpointReader& reader,
                          const std::string* secret = nullptr);

}  // namespace postrider::api
