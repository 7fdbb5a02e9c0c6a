#include "postrider/schema/resources.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/pct_string_view.hpp>
#include <boost/url/url.hpp>
#include <charconv>

namespace postrider::schema {

namespace {

namespace json = boost::json;

// Where a schema without an $id is thought to live; names under .invalid do not exist.
constexpr std::string_view kHome = "https://schema.invalid/";

struct Keyword {
  std::string_view name;
  Holds holds;
  bool in_07, in_2020_12;
};
constexpr std::array kKeywords = {
    Keyword{"additionalItems", Holds::one, true, false},
    Keyword{"items", Holds::one_or_list, true, true},
    Keyword{"prefixItems", Holds::list, false, true},
    Keyword{"contains", Holds::one, true, true},
    Keyword{"properties", Holds::map, true, true},
    Keyword{"patternProperties", Holds::map, true, true},
    Keyword{"additionalProperties", Holds::one, true, true},
    Keyword{"propertyNames", Holds::one, true, true},
    Keyword{"dependencies", Holds::map_or_names, true, true},
    Keyword{"dependentSchemas", Holds::map, false, true},
    Keyword{"unevaluatedItems", Holds::one, false, true},
    Keyword{"unevaluatedProperties", Holds::one, false, true},
    Keyword{"definitions", Holds::map, true, true},
    Keyword{"$defs", Holds::map, false, true},
    Keyword{"allOf", Holds::list, true, true},
    Keyword{"anyOf", Holds::list, true, true},
    Keyword{"oneOf", Holds::list, true, true},
    Keyword{"not", Holds::one, true, true},
    Keyword{"if", Holds::one, true, true},
    Keyword{"then", Holds::one, true, true},
    Keyword{"else", Holds::one, true, true},
};

std::optional<std::string_view> text_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view(value->get_string());
}

std::optional<std::string> resolved(std::string_view base, std::string_view reference) {
  const auto base_uri = boost::urls::parse_uri_reference(base);
  const auto relative = boost::urls::parse_uri_reference(reference);
  if (!base_uri || !relative) return std::nullopt;
  boost::urls::url out;
  if (!boost::urls::resolve(*base_uri, *relative, out)) return std::nullopt;
  return std::string(out.buffer());
}

// "name#rest" in two parts; the second is empty without a `#`.
std::pair<std::string_view, std::string_view> split_fragment(std::string_view uri) {
  const size_t sharp = uri.find('#');
  if (sharp == std::string_view::npos) return {uri, {}};
  return {uri.substr(0, sharp), uri.substr(sharp + 1)};
}

std::string unescaped(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size())
      out += token[++i] == '1' ? '/' : '~';
    else
      out += token[i];
  }
  return out;
}

const json::value* child(const json::value& value, const std::string& token) {
  if (const auto* object = value.if_object()) return object->if_contains(token);
  const auto* array = value.if_array();
  size_t index = 0;
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, index);
  if (array == nullptr || error != std::errc() || stop != end || index >= array->size()) return nullptr;
  return &(*array)[index];
}

}  // namespace

std::optional<Draft> draft_of(const json::value& document) {
  const auto* object = document.if_object();
  if (object == nullptr || !object->contains("$schema")) return Draft::draft_2020_12;
  auto name = text_at(*object, "$schema").value_or("");
  if (name.ends_with('#')) name.remove_suffix(1);
  if (name == "https://json-schema.org/draft/2020-12/schema") return Draft::draft_2020_12;
  if (name == "http://json-schema.org/draft-07/schema") return Draft::draft_07;
  return std::nullopt;
}

Holds holds(Draft draft, std::string_view keyword) {
  const auto found = std::find_if(kKeywords.begin(), kKeywords.end(),
                                  [keyword](const Keyword& each) { return each.name == keyword; });
  if (found == kKeywords.end()) return Holds::nothing;
  const bool is_there = draft == Draft::draft_07 ? found->in_07 : found->in_2020_12;
  return is_there ? found->holds : Holds::nothing;
}

base::Result<Resources, std::string> Resources::find_all(const json::value& document, Draft draft) {
  Resources all(draft);
  all.resources_.push_back({std::string(kHome), &document, {}, {}});
  if (auto problem = all.visit(document, 0, 0)) return base::Failure{std::move(*problem)};
  return all;
}

std::optional<std::string> Resources::visit(const json::value& schema, uint32_t resource, size_t depth) {
  if (depth > kDepthMax) return "is nested too deeply";
  if (places_.size() >= kPlacesMax) return "has too many parts";
  const auto* object = schema.if_object();
  if (object == nullptr) return std::nullopt;
  if (auto problem = identify(schema, resource)) return problem;
  places_.emplace(&schema, resource);
  return visit_children(*object, resource, depth);
}

// Names the schema gives itself: $id begins a resource, anchors are known in theirs.
std::optional<std::string> Resources::identify(const json::value& schema, uint32_t& resource) {
  const json::object& object = schema.get_object();
  if (draft_ == Draft::draft_07 && object.contains("$ref")) return std::nullopt;  // its siblings are ignored
  if (const auto id = text_at(object, "$id")) {
    const auto [uri, fragment] = split_fragment(*id);
    if (!uri.empty()) {
      const auto absolute = resolved(resources_[resource].uri, uri);
      if (!absolute) return "has an $id that is not a URI reference";
      if (&schema == resources_.front().root) {
        resources_.front().uri = *absolute;
      } else {
        resource = static_cast<uint32_t>(resources_.size());
        resources_.push_back({*absolute, &schema, {}, {}});
      }
    }
    if (!fragment.empty()) resources_[resource].anchors.emplace(fragment, &schema);
  }
  if (draft_ == Draft::draft_07) return std::nullopt;
  if (const auto anchor = text_at(object, "$anchor")) resources_[resource].anchors.emplace(*anchor, &schema);
  if (const auto anchor = text_at(object, "$dynamicAnchor")) {
    resources_[resource].anchors.emplace(*anchor, &schema);
    resources_[resource].dynamic_anchors.emplace(*anchor, &schema);
  }
  return std::nullopt;
}

std::optional<std::string> Resources::visit_children(const json::object& schema, uint32_t resource,
                                                     size_t depth) {
  const bool is_only_ref = draft_ == Draft::draft_07 && schema.contains("$ref");
  for (const auto& member : schema) {
    const Holds what = holds(draft_, member.key());
    if (what == Holds::nothing) continue;
    if (is_only_ref && member.key() != "definitions") continue;
    std::optional<std::string> problem;
    const json::value& value = member.value();
    if (const auto* list = value.if_array(); list && (what == Holds::list || what == Holds::one_or_list)) {
      for (const json::value& item : *list)
        if (!problem) problem = visit(item, resource, depth + 1);
    } else if (const auto* map = value.if_object();
               map && (what == Holds::map || what == Holds::map_or_names)) {
      for (const auto& entry : *map)
        if (!problem) problem = visit(entry.value(), resource, depth + 1);
    } else if (what == Holds::one || what == Holds::one_or_list) {
      problem = visit(value, resource, depth + 1);
    }
    if (problem) return problem;
  }
  return std::nullopt;
}

uint32_t Resources::resource_of(const json::value& schema, uint32_t parent) const {
  const auto found = places_.find(&schema);
  return found == places_.end() ? parent : found->second;
}

base::Result<Place, std::string> Resources::resolve(std::string_view reference, uint32_t from) const {
  const auto [uri, fragment] = split_fragment(reference);
  uint32_t resource = from;
  if (!uri.empty()) {
    const auto absolute = resolved(resources_[from].uri, uri);
    const auto found = std::find_if(resources_.begin(), resources_.end(), [&absolute](const Resource& each) {
      return absolute && each.uri == *absolute;
    });
    if (found == resources_.end())
      return base::Failure{
          std::string("refers to another document; only references within this document are supported")};
    resource = static_cast<uint32_t>(found - resources_.begin());
  }
  if (fragment.empty() || fragment.starts_with('/')) return follow(fragment, resource);
  const auto& anchors = resources_[resource].anchors;
  const auto anchor = anchors.find(fragment);
  if (anchor == anchors.end()) return base::Failure{std::string("refers to an anchor that does not exist")};
  return Place{anchor->second, resource_of(*anchor->second, resource)};
}

base::Result<Place, std::string> Resources::follow(std::string_view pointer, uint32_t resource) const {
  const auto encoded = boost::urls::make_pct_string_view(pointer);
  if (!encoded) return base::Failure{std::string("is not a URI reference")};
  const std::string decoded = encoded->decode();
  std::string_view rest = decoded;
  const json::value* at = resources_[resource].root;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view token = rest.substr(0, rest.find('/'));
    rest.remove_prefix(token.size());
    at = child(*at, unescaped(token));
    if (at == nullptr) return base::Failure{std::string("refers to a place that does not exist")};
    resource = resource_of(*at, resource);
  }
  return Place{at, resource};
}

}  // namespace postrider::schema
