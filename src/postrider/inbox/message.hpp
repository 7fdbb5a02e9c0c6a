// Converts a received request to a stored message. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/source_cache.hpp"
#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

// The signed content. One message per source, content and topic, and few topics: see store.sql.
struct Content {
  crypto::Digest256 digest;
  std::string topic;  // unsigned, and part of what the message means: Shopify sends one body under several

  bool operator==(const Content&) const = default;
};

struct NewMessage {
  SourceId source_id;
  std::string key;                         // one row per source and key
  std::optional<Content> content = {};     // deduplicated by this, too
  std::optional<std::string> provider_id;  // the key as the sender gave it
  std::optional<std::string> partition_key;
  bool is_ordered = false;
  std::string headers;    // JSON object
  std::string_view body;  // must live until it is stored
  bool is_consumed = true;
  bool is_forwarded = false;
};

// The reason why a genuine message cannot be stored (its body is not text), or no value.
std::optional<InboundRejection> invalid_body(const LoadedSource& source, std::string_view body);

// Of a verified arrival.
NewMessage make_message(const LoadedSource& source, const Arrival& arrival);

// The response to Slack's URL verification request; no value for any other message.
std::optional<std::string> slack_challenge(const Arrival& arrival);

}  // namespace postrider::inbox
