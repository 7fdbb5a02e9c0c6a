// Private to schema/: what a schema is compiled into.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/schema/pattern.hpp"

namespace postrider::schema {

using NodeIndex = uint32_t;

enum TypeBit : uint8_t {
  type_null = 1,
  type_boolean = 2,
  type_object = 4,
  type_array = 8,
  type_string = 16,
  type_number = 32,
  type_integer = 64,
};

struct NamedSubschema {
  std::string name;
  NodeIndex node;
};
struct PatternSubschema {
  Pattern pattern;
  NodeIndex node;
};
struct Dependents {
  std::string name;
  std::vector<std::string> required;
};

// Rules for objects, arrays and branches are separate: most subschemas only have a type and a bound.
struct ObjectRules {
  std::map<std::string, NodeIndex, std::less<>> properties;
  std::vector<PatternSubschema> pattern_properties;
  std::optional<NodeIndex> additional_properties;
  std::optional<NodeIndex> property_names;
  std::optional<NodeIndex> unevaluated;
  std::vector<std::string> required;
  std::vector<Dependents> dependent_required;
  std::vector<NamedSubschema> dependent_schemas;
  std::optional<uint64_t> size_min, size_max;
};

struct ArrayRules {
  std::vector<NodeIndex> prefix;
  std::optional<NodeIndex> rest;
  std::optional<NodeIndex> contains;
  uint64_t contains_min = 1;
  std::optional<uint64_t> contains_max;
  bool marks_contained = false;  // 2020-12: what `contains` found counts as evaluated
  std::optional<NodeIndex> unevaluated;
  std::optional<uint64_t> size_min, size_max;
  bool is_unique = false;
};

struct NumberRules {
  const boost::json::value* minimum = nullptr;
  const boost::json::value* maximum = nullptr;
  const boost::json::value* above = nullptr;
  const boost::json::value* below = nullptr;
  const boost::json::value* multiple_of = nullptr;
};

struct StringRules {
  std::optional<uint64_t> length_min, length_max;
  std::optional<Pattern> pattern;
};

struct Branches {
  std::vector<NodeIndex> all_of, any_of, one_of;
  std::optional<NodeIndex> not_node, if_node, then_node, else_node;
};

struct Subschema {
  std::optional<bool> constant;  // a boolean schema
  uint32_t resource = 0;         // the part with an $id of its own that it belongs to
  uint8_t types = 0;             // TypeBits; 0: any
  std::optional<NodeIndex> ref;
  std::optional<NodeIndex> dynamic_ref;  // where it leads unless an outer resource has the same anchor
  std::string dynamic_anchor;            // empty: it behaves like ref
  const boost::json::value* equal_to = nullptr;
  const boost::json::array* one_of_values = nullptr;
  std::unique_ptr<ObjectRules> object;
  std::unique_ptr<ArrayRules> array;
  std::unique_ptr<NumberRules> number;
  std::unique_ptr<StringRules> string;
  std::unique_ptr<Branches> branches;
};

struct Program {
  boost::json::value document;   // nodes point into it
  std::vector<Subschema> nodes;  // the first one is the schema itself
  std::vector<std::map<std::string, NodeIndex, std::less<>>> dynamic_anchors;  // of each resource
};

}  // namespace postrider::schema
