#include "postrider/inbox/hmac_scheme.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "postrider/base/encoding.hpp"

namespace postrider::inbox {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 3> kHashes = {"sha1", "sha256", "sha512"};
constexpr std::array<std::string_view, 2> kEncodings = {"hex", "base64"};
constexpr std::array<std::string_view, 3> kKeyForms = {"raw", "base64", "hex"};

template <class Word, size_t N>
std::optional<Word> find(const std::array<std::string_view, N>& words, std::string_view text) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) return std::nullopt;
  return static_cast<Word>(found - words.begin());
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return out;
}

std::optional<TemplatePiece> placeholder(std::string_view name) {
  using Kind = TemplatePiece::Kind;
  if (name == "body") return TemplatePiece{Kind::body, ""};
  if (name == "timestamp") return TemplatePiece{Kind::timestamp, ""};
  if (name.starts_with("header:") && name.size() > 7)
    return TemplatePiece{Kind::header, lower(name.substr(7))};
  return std::nullopt;
}

}  // namespace

std::string_view label(Hash hash) {
  return kHashes[static_cast<size_t>(hash)];
}
std::string_view label(SignatureEncoding encoding) {
  return kEncodings[static_cast<size_t>(encoding)];
}
std::string_view label(KeyForm form) {
  return kKeyForms[static_cast<size_t>(form)];
}
std::optional<Hash> parse_hash(std::string_view text) {
  return find<Hash>(kHashes, text);
}
std::optional<SignatureEncoding> parse_encoding(std::string_view text) {
  return find<SignatureEncoding>(kEncodings, text);
}
std::optional<KeyForm> parse_key_form(std::string_view text) {
  return find<KeyForm>(kKeyForms, text);
}

base::Result<std::vector<TemplatePiece>, std::string> parse_template(std::string_view text) {
  std::vector<TemplatePiece> pieces;
  while (!text.empty()) {
    const size_t open = std::min(text.find('{'), text.size());
    if (open > 0) pieces.push_back({TemplatePiece::Kind::literal, std::string(text.substr(0, open))});
    text.remove_prefix(open);
    if (text.empty()) break;
    const size_t close = text.find('}');
    const auto piece =
        close == std::string_view::npos ? std::nullopt : placeholder(text.substr(1, close - 1));
    if (!piece)
      return base::Failure{
          std::string("contains a placeholder other than {body}, {timestamp} and {header:name}")};
    pieces.push_back(*piece);
    text.remove_prefix(close + 1);
  }
  const bool has_body = std::any_of(pieces.begin(), pieces.end(), [](const TemplatePiece& piece) {
    return piece.kind == TemplatePiece::Kind::body;
  });
  if (!has_body) return base::Failure{std::string("must contain {body}; otherwise the body is not signed")};
  return pieces;
}

std::string to_json(const HmacScheme& scheme) {
  json::object object;
  object["header"] = scheme.header;
  object["prefix"] = scheme.prefix;
  object["template"] = scheme.signed_text;
  object["hash"] = label(scheme.hash);
  object["encoding"] = label(scheme.encoding);
  object["key"] = label(scheme.key);
  if (!scheme.timestamp_header.empty()) object["timestamp_header"] = scheme.timestamp_header;
  return json::serialize(object);
}

HmacScheme hmac_scheme_from_json(std::string_view text) {
  try {
    HmacScheme scheme;
    const json::value document = json::parse(text);
    const json::object& object = document.as_object();
    const auto at = [&](const char* name) { return std::string_view(object.at(name).as_string()); };
    scheme.header = at("header");
    scheme.prefix = at("prefix");
    scheme.signed_text = at("template");
    scheme.hash = parse_hash(at("hash")).value();
    scheme.encoding = parse_encoding(at("encoding")).value();
    scheme.key = parse_key_form(at("key")).value();
    if (object.contains("timestamp_header")) scheme.timestamp_header = at("timestamp_header");
    return scheme;
  } catch (const std::exception&) {
    HmacScheme unknown;
    unknown.header.clear();
    return unknown;
  }
}

base::Result<std::string, std::string> decode_key(KeyForm form, std::string_view secret) {
  if (form == KeyForm::raw) return std::string(secret);
  auto bytes = form == KeyForm::hex ? base::hex_decode(secret) : base::base64_decode(secret);
  if (!bytes || bytes->empty())
    return base::Failure{"is not " + std::string(label(form)) + ", which signature.key requires"};
  return std::move(*bytes);
}

}  // namespace postrider::inbox
