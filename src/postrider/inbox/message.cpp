#include "postrider/inbox/message.hpp"

#include <simdjson.h>

#include <algorithm>
#include <vector>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/inbox/pick.hpp"
#include "postrider/inbox/signed_text.hpp"

namespace postrider::inbox {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

// Stored are the provider's headers, the configured ones, and those by which the message is verified. Headers
// with credentials are never stored.
bool matters(const LoadedSource& loaded, std::string_view name) {
  if (name == "authorization" || name == "proxy-authorization" || name == "cookie") return false;
  if (name == "content-type" || name == "user-agent") return true;
  const Source& source = loaded.source;
  for (const auto prefix : traits(source.provider).header_prefixes)
    if (name.starts_with(prefix)) return true;
  const auto& wanted = source.settings.headers;
  if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) return true;
  for (const auto& where : {source.settings.idempotency_key, source.settings.partition_key})
    if (where && lower(*where) == name) return true;
  if (source.provider != Provider::hmac) return false;
  const HmacScheme& scheme = source.settings.signature;
  if (name == scheme.header || name == scheme.timestamp_header) return true;
  return std::any_of(loaded.how.signed_pieces.begin(), loaded.how.signed_pieces.end(),
                     [&](const TemplatePiece& piece) {
                       return piece.kind == TemplatePiece::Kind::header && piece.text == name;
                     });
}

std::string kept_headers(const LoadedSource& loaded, const Arrival& arrival) {
  std::vector<std::pair<std::string, std::string>> kept;
  for (const http::Field& field : arrival.fields) {
    std::string name = lower(field.name);
    if (!matters(loaded, name)) continue;
    const auto same =
        std::find_if(kept.begin(), kept.end(), [&](const auto& other) { return other.first == name; });
    if (same == kept.end())
      kept.emplace_back(std::move(name), field.value);
    else
      same->second.append(", ").append(field.value);
  }
  std::string json = "{";
  for (const auto& [name, value] : kept) {
    if (json.size() > 1) json += ',';
    json += base::json_quoted(name) + ":" + base::json_quoted(value);
  }
  return json + "}";
}

std::optional<std::string> provider_id(const LoadedSource& loaded, const Arrival& arrival, Picker& picker) {
  const Provider provider = loaded.source.provider;
  if (const auto& where = loaded.source.settings.idempotency_key) return picker.at(*where);
  // Of the headers that are signed: the other family's id could be anything.
  if (provider == Provider::svix) return picker.at(std::string(standard_family(provider, arrival)) + "id");
  for (const auto where : traits(provider).idempotency_keys)
    if (auto id = picker.at(where)) return id;
  return std::nullopt;
}

Content content_of(const LoadedSource& loaded, const Arrival& arrival) {
  Content content{content_digest(loaded.how, arrival), ""};
  if (loaded.source.provider == Provider::shopify)
    content.topic = storable_key(std::string(arrival.header("x-shopify-topic").value_or("")));
  return content;
}

// Messages without an ID are the same if their signed content is the same.
std::string key_of(const Content& content) {
  return std::string(content_key_prefix) +
         base::hex_encode(crypto::sha256({content.digest.view(), content.topic}).view());
}

}  // namespace

std::optional<InboundRejection> invalid_body(const LoadedSource& source, std::string_view body) {
  const auto bytes_max = static_cast<size_t>(source.source.settings.body_bytes_max);
  if (body.size() > bytes_max)
    return InboundRejection{RejectReason::body_too_large, std::to_string(body.size()) + " bytes, of " +
                                                              std::to_string(bytes_max) + " allowed"};
  if (body.find('\0') != std::string_view::npos || !simdjson::validate_utf8(body.data(), body.size()))
    return InboundRejection{RejectReason::malformed_body, "the body is not UTF-8 text"};
  return std::nullopt;
}

NewMessage make_message(const LoadedSource& source, const Arrival& arrival) {
  const SourceSettings& settings = source.source.settings;
  Picker picker(arrival);
  NewMessage message;
  message.source_id = source.source.id;
  auto id = provider_id(source, arrival, picker);
  const bool is_by_content = source.source.deduplicate() == Deduplicate::content;
  if (is_by_content || !id) message.content = content_of(source, arrival);
  if (id) {
    message.key = storable_key(std::move(*id));
    message.provider_id = message.key;
  } else {
    message.key = key_of(*message.content);
  }
  if (!is_by_content) message.content.reset();
  if (settings.partition_key) {
    if (auto key = picker.at(*settings.partition_key)) message.partition_key = storable_key(std::move(*key));
  }
  message.is_ordered = settings.is_strict && message.partition_key;
  message.headers = kept_headers(source, arrival);
  message.body = arrival.body;
  message.is_consumed = settings.is_consumed;
  message.is_forwarded = settings.forward.has_value();
  return message;
}

std::optional<std::string> slack_challenge(const Arrival& arrival) {
  if (arrival.body.find("url_verification") == std::string_view::npos) return std::nullopt;
  Picker picker(arrival);
  if (picker.at("/type") != "url_verification") return std::nullopt;
  return picker.at("/challenge");
}

}  // namespace postrider::inbox
