#include "postrider/schema/evaluator.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>

#include "postrider/base/encoding.hpp"
#include "postrider/schema/values.hpp"

namespace postrider::schema {

namespace {

namespace json = boost::json;

uint8_t types_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return type_null;
    case json::kind::bool_:
      return type_boolean;
    case json::kind::object:
      return type_object;
    case json::kind::array:
      return type_array;
    case json::kind::string:
      return type_string;
    case json::kind::int64:
    case json::kind::uint64:
      return type_number | type_integer;
    case json::kind::double_:
      return is_integer(value) ? type_number | type_integer : type_number;
  }
  return 0;
}

std::string type_names(uint8_t bits) {
  constexpr std::pair<uint8_t, std::string_view> kNames[] = {
      {type_null, "null"},         {type_boolean, "a boolean"}, {type_object, "an object"},
      {type_array, "an array"},    {type_string, "a string"},   {type_number, "a number"},
      {type_integer, "an integer"}};
  std::string text;
  for (const auto& [bit, name] : kNames) {
    if ((bits & bit) == 0) continue;
    if (!text.empty()) text += " or ";
    text += name;
  }
  return text;
}

void merge(std::vector<bool>& into, const std::vector<bool>& more) {
  for (size_t i = 0; i < into.size(); ++i)
    if (more[i]) into[i] = true;
}

size_t parts(const json::value& value) {
  if (const auto* object = value.if_object()) return object->size();
  if (const auto* array = value.if_array()) return array->size();
  return 0;
}

}  // namespace

bool Evaluator::run(const json::value& document) {
  const Path root;
  const bool is_valid = eval(0, {document, root});
  return is_valid && !has_given_up_;
}

void Evaluator::spend(size_t work) {
  if (work_ < work) {
    has_given_up_ = true;
    work_ = 0;
  } else {
    work_ -= work;
  }
}

bool Evaluator::fail(const Path& path, std::string detail) {
  if (!is_collecting() || violations_->size() >= kViolationsMax) return false;
  std::vector<const Path*> steps;
  for (const Path* step = &path; step->parent != nullptr; step = step->parent) steps.push_back(step);
  std::string pointer;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    pointer +=
        "/" + ((*step)->is_index ? std::to_string((*step)->index) : base::json_pointer_token((*step)->name));
  violations_->push_back({std::move(pointer), std::move(detail)});
  return false;
}

bool Evaluator::eval(NodeIndex index, const Subject& subject) {
  spend(1);
  if (depth_ >= kEvalDepthMax) has_given_up_ = true;
  if (has_given_up_) return false;
  const Subschema& node = program_.nodes[index];
  if (node.constant) return *node.constant || fail(subject.path, "is not allowed here");
  ++depth_;
  const bool enters = scope_.empty() || scope_.back() != node.resource;
  if (enters) scope_.push_back(node.resource);
  const bool is_valid = eval_node(node, subject);
  if (enters) scope_.pop_back();
  --depth_;
  if (work_ == 0) has_given_up_ = true;  // used up by a comparison
  return is_valid;
}

bool Evaluator::eval_node(const Subschema& node, const Subject& subject) {
  const bool asks_object = node.object && node.object->unevaluated && subject.value.is_object();
  const bool asks_array = node.array && node.array->unevaluated && subject.value.is_array();
  Marks own;
  Subject inner{subject.value, subject.path, subject.marks};
  if (asks_object || asks_array) {
    own.resize(parts(subject.value));
    inner.marks = &own;
  }
  bool is_valid = references(node, inner);
  if (goes_on(is_valid)) is_valid = plain(node, inner) && is_valid;
  if (goes_on(is_valid) && node.branches) is_valid = branches(*node.branches, inner) && is_valid;
  if (goes_on(is_valid) && node.object && subject.value.is_object())
    is_valid = objects(*node.object, inner) && is_valid;
  if (goes_on(is_valid) && node.array && subject.value.is_array())
    is_valid = arrays(*node.array, inner) && is_valid;
  if (is_valid && asks_object) is_valid = unevaluated_members(*node.object, inner);
  if (is_valid && asks_array) is_valid = unevaluated_items(*node.array, inner);
  if (inner.marks == &own && subject.marks != nullptr && is_valid) merge(*subject.marks, own);
  return is_valid;
}

NodeIndex Evaluator::dynamic_target(const Subschema& node) const {
  if (!node.dynamic_anchor.empty())
    for (const uint32_t resource : scope_) {
      const auto& anchors = program_.dynamic_anchors[resource];
      if (const auto found = anchors.find(node.dynamic_anchor); found != anchors.end()) return found->second;
    }
  return *node.dynamic_ref;
}

bool Evaluator::references(const Subschema& node, const Subject& subject) {
  bool is_valid = true;
  if (node.ref) is_valid = branch(*node.ref, subject);
  if (node.dynamic_ref && goes_on(is_valid)) is_valid = branch(dynamic_target(node), subject) && is_valid;
  return is_valid;
}

bool Evaluator::plain(const Subschema& node, const Subject& subject) {
  const json::value& value = subject.value;
  if (node.types != 0 && (types_of(value) & node.types) == 0)
    return fail(subject.path, "must be " + type_names(node.types));
  if (node.equal_to != nullptr && !is_equal(value, *node.equal_to, work_))
    return fail(subject.path, "must be the one allowed value");
  if (node.one_of_values != nullptr &&
      std::none_of(node.one_of_values->begin(), node.one_of_values->end(),
                   [&](const json::value& each) { return is_equal(value, each, work_); }))
    return fail(subject.path, "must be one of the listed values");
  if (node.number && value.is_number()) return numbers(*node.number, subject);
  if (node.string && value.is_string()) return strings(*node.string, subject);
  return true;
}

bool Evaluator::numbers(const NumberRules& rules, const Subject& subject) {
  const json::value& value = subject.value;
  if (rules.minimum && compare_numbers(value, *rules.minimum) < 0)
    return fail(subject.path, "is below the minimum");
  if (rules.maximum && compare_numbers(value, *rules.maximum) > 0)
    return fail(subject.path, "is above the maximum");
  if (rules.above && !(compare_numbers(value, *rules.above) > 0))
    return fail(subject.path, "is not above the exclusive minimum");
  if (rules.below && !(compare_numbers(value, *rules.below) < 0))
    return fail(subject.path, "is not less than the exclusive maximum");
  if (rules.multiple_of && !is_multiple(value, *rules.multiple_of))
    return fail(subject.path, "is not a multiple of " + boost::json::serialize(*rules.multiple_of));
  return true;
}

bool Evaluator::found(const Pattern& pattern, std::string_view text) {
  spend(pattern.work_for(text));
  return !has_given_up_ && pattern.is_found_in(text);
}

bool Evaluator::strings(const StringRules& rules, const Subject& subject) {
  const std::string_view text = subject.value.get_string();
  if (rules.length_min || rules.length_max) {
    const size_t length = count_characters(text);
    if (rules.length_min && length < *rules.length_min)
      return fail(subject.path, "must have at least " + std::to_string(*rules.length_min) + " characters");
    if (rules.length_max && length > *rules.length_max)
      return fail(subject.path, "must have at most " + std::to_string(*rules.length_max) + " characters");
  }
  if (rules.pattern && !found(*rules.pattern, text)) return fail(subject.path, "does not match the pattern");
  return true;
}

bool Evaluator::quietly(NodeIndex index, const Subject& subject) {
  ++quiet_;
  const bool is_valid = branch(index, subject);
  --quiet_;
  return is_valid;
}

// Members that a failed branch evaluated do not count as evaluated.
bool Evaluator::branch(NodeIndex index, const Subject& subject) {
  if (subject.marks == nullptr) return eval(index, subject);
  Marks own(subject.marks->size());
  spend(own.size());
  const bool is_valid = eval(index, {subject.value, subject.path, &own});
  if (is_valid) merge(*subject.marks, own);
  return is_valid;
}

bool Evaluator::branches(const Branches& rules, const Subject& subject) {
  bool is_valid = true;
  for (const NodeIndex each : rules.all_of) {
    if (!goes_on(is_valid)) return false;
    is_valid = branch(each, subject) && is_valid;
  }
  if (goes_on(is_valid)) is_valid = any_or_one(rules, subject) && is_valid;
  if (goes_on(is_valid) && rules.not_node && quietly(*rules.not_node, {subject.value, subject.path}))
    is_valid = fail(subject.path, "must not match the schema of `not`");
  if (goes_on(is_valid)) is_valid = choice(rules, subject) && is_valid;
  return is_valid;
}

bool Evaluator::any_or_one(const Branches& rules, const Subject& subject) {
  size_t fitting = 0;
  for (const NodeIndex each : rules.any_of) {
    if (quietly(each, subject)) ++fitting;
    if (fitting > 0 && subject.marks == nullptr) break;  // the others may evaluate more members
  }
  if (!rules.any_of.empty() && fitting == 0) return fail(subject.path, "matches none of the allowed schemas");
  if (rules.one_of.empty()) return true;
  fitting = 0;
  for (const NodeIndex each : rules.one_of) {
    if (quietly(each, subject)) ++fitting;
    if (fitting > 1) break;
  }
  if (fitting == 1) return true;
  return fail(subject.path, fitting == 0
                                ? "matches none of the allowed schemas"
                                : "matches more than one of the schemas, but must match exactly one");
}

bool Evaluator::choice(const Branches& rules, const Subject& subject) {
  if (!rules.if_node) return true;
  const bool holds = quietly(*rules.if_node, subject);
  const auto& next = holds ? rules.then_node : rules.else_node;
  return !next || branch(*next, subject);
}

}  // namespace postrider::schema
