#include "postrider/inbox/pick.hpp"

#include <simdjson.h>

#include <algorithm>

#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"

namespace postrider::inbox {

namespace {

constexpr size_t kWhereMax = 128;
constexpr size_t kFormParametersMax = 1'000;

bool is_form(const Arrival& arrival) {
  const auto type = arrival.header("content-type");
  if (!type) return false;
  std::string_view name = type->substr(0, type->find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  constexpr std::string_view wanted = "application/x-www-form-urlencoded";
  return std::equal(name.begin(), name.end(), wanted.begin(), wanted.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; });
}

std::optional<std::string> text_of(simdjson::dom::element element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::STRING:
      return std::string(std::string_view(element.get_string().value_unsafe()));
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
    case element_type::BOOL:
      return simdjson::minify(element);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<http::Parameter>> form_of(const Arrival& arrival) {
  if (!is_form(arrival)) return std::nullopt;
  auto parameters = http::parse_query(arrival.body);
  if (!parameters || parameters->size() > kFormParametersMax) return std::nullopt;
  return parameters;
}

struct Picker::State {
  explicit State(const Arrival& what) : arrival(what) {}

  // The content type is not signed. An object or an array is no form, whatever the header says, or a recorded
  // request would lose its id with another content type.
  void parse() {
    if (is_parsed) return;
    is_parsed = true;
    has_document = parser.parse(arrival.body.data(), arrival.body.size()).get(document) == simdjson::SUCCESS;
    if (has_document && (document.is_object() || document.is_array())) return;
    form = form_of(arrival);
    if (form) has_document = false;
  }

  std::optional<std::string> in_form(std::string_view name) const {
    for (const auto& parameter : *form)
      if (parameter.name == name) return parameter.value;
    return std::nullopt;
  }

  const Arrival& arrival;
  bool is_parsed = false;
  std::optional<std::vector<http::Parameter>> form;
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  bool has_document = false;
};

Picker::Picker(const Arrival& arrival) : state_(std::make_unique<State>(arrival)) {}
Picker::~Picker() = default;

std::optional<std::string> Picker::at(std::string_view where) {
  std::optional<std::string> value;
  if (!where.starts_with('/')) {
    if (const auto header = state_->arrival.header(where)) value = std::string(*header);
  } else {
    state_->parse();
    simdjson::dom::element element;
    if (state_->form)
      value = state_->in_form(where.substr(1));
    else if (state_->has_document && state_->document.at_pointer(where).get(element) == simdjson::SUCCESS)
      value = text_of(element);
  }
  if (value && value->empty()) value.reset();
  return value;
}

bool Picker::is_json() {
  state_->parse();
  return state_->has_document;
}

std::optional<std::string> Picker::form_as_json() {
  state_->parse();
  if (!state_->form) return std::nullopt;
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> members;
  for (const auto& parameter : *state_->form) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.first == parameter.name; });
    if (found == members.end())
      members.push_back({parameter.name, {parameter.value}});
    else
      found->second.push_back(parameter.value);
  }
  std::string json = "{";
  for (const auto& [name, values] : members) {
    if (json.size() > 1) json += ',';
    json += base::json_quoted(name) + ":";
    if (values.size() > 1) json += '[';
    for (size_t i = 0; i < values.size(); ++i) json += (i > 0 ? "," : "") + base::json_quoted(values[i]);
    if (values.size() > 1) json += ']';
  }
  return json + "}";
}

bool is_where(std::string_view text) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7F; };
  if (text.empty() || text.size() > kWhereMax || !std::all_of(text.begin(), text.end(), is_plain))
    return false;
  if (text.starts_with('/')) return true;
  const auto is_token = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return std::all_of(text.begin(), text.end(), is_token);
}

std::string storable_key(std::string value) {
  const bool looks_made = value.starts_with(content_key_prefix) || value.starts_with(hash_key_prefix);
  if (!looks_made && value.size() <= kKeyBytesMax && value.find('\0') == std::string::npos &&
      simdjson::validate_utf8(value.data(), value.size()))
    return value;
  return std::string(hash_key_prefix) + base::hex_encode(crypto::sha256(value).view());
}

}  // namespace postrider::inbox
