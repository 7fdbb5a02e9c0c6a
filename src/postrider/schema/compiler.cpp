#include "postrider/schema/compiler.hpp"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "postrider/base/encoding.hpp"
#include "postrider/schema/loops.hpp"
#include "postrider/schema/values.hpp"

namespace postrider::schema {

namespace {

namespace json = boost::json;

constexpr size_t kPatternsMax = 200;
constexpr size_t kNodesMax = 2 * kPlacesMax;  // references may lead to places that are no subschemas

constexpr std::array<std::pair<std::string_view, uint8_t>, 7> kTypes = {{
    {"null", type_null},
    {"boolean", type_boolean},
    {"object", type_object},
    {"array", type_array},
    {"string", type_string},
    {"number", type_number},
    {"integer", type_integer},
}};

uint8_t type_bit(const json::value& name) {
  const auto* text = name.if_string();
  for (const auto& [label, bit] : kTypes)
    if (text != nullptr && *text == label) return bit;
  return 0;
}

}  // namespace

std::optional<Violation> Compiler::run() {
  node_for(program_.document, 0, "");
  while (!waiting_.empty() && !problem_) {
    const Waiting next = std::move(waiting_.back());
    waiting_.pop_back();
    compile(next);
  }
  if (!problem_) dynamic_anchors();
  if (!problem_ && has_endless_loop(program_))
    problem_ = Violation{"", "has a reference that refers to itself in an endless loop"};
  return problem_;
}

NodeIndex Compiler::node_for(const json::value& schema, uint32_t resource, std::string pointer) {
  const auto [found, is_new] = nodes_.try_emplace(&schema, static_cast<NodeIndex>(program_.nodes.size()));
  if (!is_new) return found->second;
  if (program_.nodes.size() >= kNodesMax && !problem_) problem_ = Violation{"", "has too many parts"};
  program_.nodes.emplace_back();
  waiting_.push_back({&schema, found->second, resource, std::move(pointer)});
  return found->second;
}

void Compiler::compile(const Waiting& waiting) {
  Subschema& made = program_.nodes[waiting.node];
  made.resource = resources_.resource_of(*waiting.value, waiting.resource);
  if (waiting.value->is_bool()) {
    made.constant = waiting.value->get_bool();
  } else if (const auto* object = waiting.value->if_object()) {
    compile_object({*object, waiting.node, made.resource, waiting.pointer});
  } else {
    problem_ = Violation{waiting.pointer, "must be a schema: an object, true or false"};
  }
}

void Compiler::compile_object(const Site& site) {
  references(site);
  if (is_07() && node(site).ref) return;  // keywords next to a $ref are ignored there
  types(site);
  numbers(site);
  strings(site);
  objects(site);
  arrays(site);
  branches(site);
}

void Compiler::reject(const Site& site, std::string_view name, std::string detail) {
  if (!problem_) problem_ = Violation{site.pointer + "/" + base::json_pointer_token(name), std::move(detail)};
}

const json::value* Compiler::keyword(const Site& site, std::string_view name) const {
  return site.schema.if_contains(name);
}

std::optional<NodeIndex> Compiler::schema_at(const Site& site, std::string_view name) {
  const json::value* value = keyword(site, name);
  if (value == nullptr) return std::nullopt;
  return node_for(*value, site.resource, site.pointer + "/" + std::string(name));
}

std::vector<NodeIndex> Compiler::schemas_at(const Site& site, std::string_view name) {
  std::vector<NodeIndex> all;
  const json::value* value = keyword(site, name);
  if (value == nullptr) return all;
  const auto* list = value->if_array();
  if (list == nullptr || list->empty()) {
    reject(site, name, "must be a non-empty array of schemas");
    return all;
  }
  for (size_t i = 0; i < list->size(); ++i)
    all.push_back(node_for((*list)[i], site.resource,
                           site.pointer + "/" + std::string(name) + "/" + std::to_string(i)));
  return all;
}

std::optional<uint64_t> Compiler::count_at(const Site& site, std::string_view name) {
  const json::value* value = keyword(site, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !is_integer(*value) || compare_numbers(*value, json::value(0)) < 0) {
    reject(site, name, "must be an integer of 0 or more");
    return std::nullopt;
  }
  if (value->is_double())
    return value->get_double() > 1e18 ? UINT64_MAX : static_cast<uint64_t>(value->get_double());
  return value->to_number<uint64_t>();
}

const json::value* Compiler::number_at(const Site& site, std::string_view name) {
  const json::value* value = keyword(site, name);
  if (value == nullptr || value->is_number()) return value;
  reject(site, name, "must be a number");
  return nullptr;
}

std::vector<std::string> Compiler::names(const Site& site, std::string_view name, const json::value& value) {
  std::vector<std::string> all;
  const auto* list = value.if_array();
  if (list == nullptr) reject(site, name, "must be an array of strings");
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto* text = (*list)[i].if_string())
      all.emplace_back(*text);
    else
      reject(site, name, "must be an array of strings");
  }
  return all;
}

std::optional<Pattern> Compiler::pattern(const Site& site, std::string_view name, std::string_view text) {
  if (++patterns_ > kPatternsMax) {
    reject(site, name, "has too many patterns: the limit is " + std::to_string(kPatternsMax));
    return std::nullopt;
  }
  auto compiled = Pattern::compile(text);
  if (compiled) return std::move(*compiled);
  reject(site, name, compiled.error());
  return std::nullopt;
}

void Compiler::references(const Site& site) {
  for (const std::string_view name : {"$ref", "$dynamicRef"}) {
    const json::value* value = keyword(site, name);
    if (value == nullptr || (is_07() && name == "$dynamicRef")) continue;
    const auto* text = value->if_string();
    if (text == nullptr) return reject(site, name, "must be a string");
    const auto place = resources_.resolve(*text, site.resource);
    if (!place) return reject(site, name, place.error());
    const NodeIndex target = node_for(*place->value, place->resource, site.pointer + "/" + std::string(name));
    if (name == "$ref") {
      node(site).ref = target;
      continue;
    }
    node(site).dynamic_ref = target;
    const std::string_view anchor =
        std::string_view(*text).substr(std::min(text->size(), text->find('#') + 1));
    const auto* object = place->value->if_object();
    const json::value* own = object ? object->if_contains("$dynamicAnchor") : nullptr;
    if (own != nullptr && own->is_string() && own->get_string() == anchor) node(site).dynamic_anchor = anchor;
  }
}

void Compiler::types(const Site& site) {
  if (const json::value* type = keyword(site, "type")) {
    uint8_t bits = type_bit(*type);
    if (const auto* list = type->if_array())
      for (const json::value& each : *list) bits |= type_bit(each) ? type_bit(each) : 0x80;
    if (bits == 0 || (bits & 0x80) != 0)
      reject(site, "type", "must be one of null, boolean, object, array, string, number, integer, or a list");
    node(site).types = bits;
  }
  node(site).equal_to = keyword(site, "const");
  if (const json::value* values = keyword(site, "enum")) {
    node(site).one_of_values = values->if_array();
    if (!values->is_array()) reject(site, "enum", "must be an array");
  }
}

void Compiler::numbers(const Site& site) {
  NumberRules rules;
  rules.minimum = number_at(site, "minimum");
  rules.maximum = number_at(site, "maximum");
  rules.above = number_at(site, "exclusiveMinimum");
  rules.below = number_at(site, "exclusiveMaximum");
  rules.multiple_of = number_at(site, "multipleOf");
  if (rules.multiple_of && !(compare_numbers(*rules.multiple_of, json::value(0)) > 0))
    return reject(site, "multipleOf", "must be above 0");
  if (rules.minimum || rules.maximum || rules.above || rules.below || rules.multiple_of)
    node(site).number = std::make_unique<NumberRules>(rules);
}

void Compiler::strings(const Site& site) {
  StringRules rules;
  rules.length_min = count_at(site, "minLength");
  rules.length_max = count_at(site, "maxLength");
  if (const json::value* value = keyword(site, "pattern")) {
    const auto* text = value->if_string();
    if (text == nullptr) return reject(site, "pattern", "must be a string");
    rules.pattern = pattern(site, "pattern", *text);
  }
  if (rules.length_min || rules.length_max || rules.pattern)
    node(site).string = std::make_unique<StringRules>(std::move(rules));
}

void Compiler::objects(const Site& site) {
  auto rules = std::make_unique<ObjectRules>();
  properties(site, *rules);
  dependencies(site, *rules);
  rules->additional_properties = schema_at(site, "additionalProperties");
  rules->property_names = schema_at(site, "propertyNames");
  if (!is_07()) rules->unevaluated = schema_at(site, "unevaluatedProperties");
  if (const json::value* required = keyword(site, "required"))
    rules->required = names(site, "required", *required);
  rules->size_min = count_at(site, "minProperties");
  rules->size_max = count_at(site, "maxProperties");
  const bool says_nothing = rules->properties.empty() && rules->pattern_properties.empty() &&
                            !rules->additional_properties && !rules->property_names && !rules->unevaluated &&
                            rules->required.empty() && rules->dependent_required.empty() &&
                            rules->dependent_schemas.empty() && !rules->size_min && !rules->size_max;
  if (!says_nothing) node(site).object = std::move(rules);
}

void Compiler::properties(const Site& site, ObjectRules& rules) {
  if (const json::value* value = keyword(site, "properties")) {
    const auto* map = value->if_object();
    if (map == nullptr) return reject(site, "properties", "must be an object of schemas");
    for (const auto& [name, schema] : *map)
      rules.properties.emplace(
          name,
          node_for(schema, site.resource, site.pointer + "/properties/" + base::json_pointer_token(name)));
  }
  if (const json::value* value = keyword(site, "patternProperties")) {
    const auto* map = value->if_object();
    if (map == nullptr) return reject(site, "patternProperties", "must be an object of schemas");
    for (const auto& [text, schema] : *map) {
      auto compiled = pattern(site, "patternProperties", text);
      if (!compiled) return;
      const NodeIndex target = node_for(
          schema, site.resource, site.pointer + "/patternProperties/" + base::json_pointer_token(text));
      rules.pattern_properties.push_back({std::move(*compiled), target});
    }
  }
}

// `dependencies` of draft 07 became dependentRequired and dependentSchemas; all three are taken.
void Compiler::dependencies(const Site& site, ObjectRules& rules) {
  for (const std::string_view keyword_name : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const json::value* value = keyword(site, keyword_name);
    if (value == nullptr || (is_07() && keyword_name != "dependencies")) continue;
    const auto* map = value->if_object();
    if (map == nullptr) return reject(site, keyword_name, "must be an object");
    for (const auto& [name, what] : *map) {
      const bool is_names =
          keyword_name == "dependentRequired" || (keyword_name == "dependencies" && what.is_array());
      if (is_names)
        rules.dependent_required.push_back({std::string(name), names(site, keyword_name, what)});
      else
        rules.dependent_schemas.push_back(
            {std::string(name), node_for(what, site.resource,
                                         site.pointer + "/" + std::string(keyword_name) + "/" +
                                             base::json_pointer_token(name))});
    }
  }
}

void Compiler::arrays(const Site& site) {
  auto rules = std::make_unique<ArrayRules>();
  const json::value* items = keyword(site, "items");
  if (is_07() && items != nullptr && items->is_array()) {
    if (!items->get_array().empty()) rules->prefix = schemas_at(site, "items");
    rules->rest = schema_at(site, "additionalItems");
  } else {
    if (!is_07()) rules->prefix = schemas_at(site, "prefixItems");
    rules->rest = schema_at(site, "items");
  }
  rules->contains = schema_at(site, "contains");
  if (!is_07()) {
    rules->contains_min = count_at(site, "minContains").value_or(1);
    rules->contains_max = count_at(site, "maxContains");
    rules->marks_contained = true;
    rules->unevaluated = schema_at(site, "unevaluatedItems");
  }
  rules->size_min = count_at(site, "minItems");
  rules->size_max = count_at(site, "maxItems");
  if (const json::value* unique = keyword(site, "uniqueItems")) {
    if (!unique->is_bool()) return reject(site, "uniqueItems", "must be true or false");
    rules->is_unique = unique->get_bool();
  }
  if (!rules->prefix.empty() || rules->rest || rules->contains || rules->unevaluated || rules->size_min ||
      rules->size_max || rules->is_unique)
    node(site).array = std::move(rules);
}

void Compiler::branches(const Site& site) {
  Branches rules;
  rules.all_of = schemas_at(site, "allOf");
  rules.any_of = schemas_at(site, "anyOf");
  rules.one_of = schemas_at(site, "oneOf");
  rules.not_node = schema_at(site, "not");
  rules.if_node = schema_at(site, "if");
  if (rules.if_node) {
    rules.then_node = schema_at(site, "then");
    rules.else_node = schema_at(site, "else");
  }
  if (!rules.all_of.empty() || !rules.any_of.empty() || !rules.one_of.empty() || rules.not_node ||
      rules.if_node)
    node(site).branches = std::make_unique<Branches>(std::move(rules));
}

// Anchors that a $dynamicRef may find although no keyword leads there.
void Compiler::dynamic_anchors() {
  program_.dynamic_anchors.resize(resources_.count());
  for (uint32_t resource = 0; resource < resources_.count(); ++resource)
    for (const auto& [name, schema] : resources_.dynamic_anchors(resource))
      program_.dynamic_anchors[resource].emplace(name, node_for(*schema, resource, "/$dynamicAnchor"));
  while (!waiting_.empty() && !problem_) {
    const Waiting next = std::move(waiting_.back());
    waiting_.pop_back();
    compile(next);
  }
}

base::Result<Schema, Violation> Schema::compile(std::string_view text) {
  if (text.size() > kSchemaBytesMax)
    return base::Failure{
        Violation{"", "must not be longer than " + std::to_string(kSchemaBytesMax) + " bytes"}};
  auto program = std::make_shared<Program>();
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::error_code error;
  program->document = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return base::Failure{Violation{"", "is not valid JSON: " + error.message()}};
  const auto draft = draft_of(program->document);
  if (!draft)
    return base::Failure{Violation{"/$schema",
                                   "must be https://json-schema.org/draft/2020-12/schema or "
                                   "http://json-schema.org/draft-07/schema#"}};
  const auto resources = Resources::find_all(program->document, *draft);
  if (!resources) return base::Failure{Violation{"", resources.error()}};
  Compiler compiler(*program, *resources);
  if (auto problem = compiler.run()) return base::Failure{std::move(*problem)};
  return Schema(std::move(program));
}

}  // namespace postrider::schema
