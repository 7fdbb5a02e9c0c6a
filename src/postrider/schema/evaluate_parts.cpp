// The half of the evaluator that looks into objects and arrays.
#include <algorithm>
#include <unordered_map>

#include "postrider/schema/evaluator.hpp"
#include "postrider/schema/values.hpp"

namespace postrider::schema {

namespace {

namespace json = boost::json;

std::string count_of(uint64_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what);
}

}  // namespace

bool Evaluator::objects(const ObjectRules& rules, const Subject& subject) {
  const json::object& object = subject.value.get_object();
  bool is_valid = true;
  for (const std::string& name : rules.required)
    if (!object.contains(name)) {
      is_valid = fail(subject.path, "must have the member \"" + name + "\"");
      if (!goes_on(is_valid)) return false;
    }
  if (rules.size_min && object.size() < *rules.size_min)
    is_valid = fail(subject.path, "must have at least " + count_of(*rules.size_min, "members"));
  if (rules.size_max && object.size() > *rules.size_max)
    is_valid = fail(subject.path, "must have at most " + count_of(*rules.size_max, "members"));
  if (goes_on(is_valid)) is_valid = members(rules, subject) && is_valid;
  if (goes_on(is_valid)) is_valid = dependents(rules, subject) && is_valid;
  return is_valid;
}

bool Evaluator::members(const ObjectRules& rules, const Subject& subject) {
  if (rules.properties.empty() && rules.pattern_properties.empty() && !rules.additional_properties &&
      !rules.property_names)
    return true;
  bool is_valid = true;
  size_t place = 0;
  for (const auto& member : subject.value.get_object()) {
    spend(1);
    if (!goes_on(is_valid)) return false;
    const std::string_view name = member.key();
    const Path path{&subject.path, name};
    const Subject inner{member.value(), path};
    bool is_evaluated = false;
    if (const auto known = rules.properties.find(name); known != rules.properties.end()) {
      is_evaluated = true;
      is_valid = eval(known->second, inner) && is_valid;
    }
    for (const PatternSubschema& each : rules.pattern_properties) {
      if (!goes_on(is_valid)) return false;
      if (!found(each.pattern, name)) continue;
      is_evaluated = true;
      is_valid = eval(each.node, inner) && is_valid;
    }
    if (!is_evaluated && rules.additional_properties && goes_on(is_valid)) {
      is_evaluated = true;
      is_valid = eval(*rules.additional_properties, inner) && is_valid;
    }
    if (rules.property_names && goes_on(is_valid)) {
      const json::value text(member.key());
      is_valid = eval(*rules.property_names, {text, path}) && is_valid;
    }
    if (is_evaluated && subject.marks != nullptr) (*subject.marks)[place] = true;
    ++place;
  }
  return is_valid;
}

bool Evaluator::dependents(const ObjectRules& rules, const Subject& subject) {
  const json::object& object = subject.value.get_object();
  bool is_valid = true;
  for (const Dependents& each : rules.dependent_required) {
    if (!object.contains(each.name)) continue;
    for (const std::string& name : each.required)
      if (!object.contains(name))
        is_valid = fail(subject.path, "must have the member \"" + name + "\" beside \"" + each.name + "\"");
    if (!goes_on(is_valid)) return false;
  }
  for (const NamedSubschema& each : rules.dependent_schemas) {
    if (!object.contains(each.name)) continue;
    is_valid = branch(each.node, subject) && is_valid;
    if (!goes_on(is_valid)) return false;
  }
  return is_valid;
}

bool Evaluator::arrays(const ArrayRules& rules, const Subject& subject) {
  const json::array& array = subject.value.get_array();
  bool is_valid = true;
  if (rules.size_min && array.size() < *rules.size_min)
    is_valid = fail(subject.path, "must have at least " + count_of(*rules.size_min, "items"));
  if (rules.size_max && array.size() > *rules.size_max)
    is_valid = fail(subject.path, "must have at most " + count_of(*rules.size_max, "items"));
  if (goes_on(is_valid)) is_valid = items(rules, subject) && is_valid;
  if (goes_on(is_valid) && rules.contains) is_valid = contained(rules, subject) && is_valid;
  if (goes_on(is_valid) && rules.is_unique) is_valid = unique(subject) && is_valid;
  return is_valid;
}

bool Evaluator::items(const ArrayRules& rules, const Subject& subject) {
  const json::array& array = subject.value.get_array();
  const size_t count = rules.rest ? array.size() : std::min(array.size(), rules.prefix.size());
  bool is_valid = true;
  for (size_t i = 0; i < count; ++i) {
    if (!goes_on(is_valid)) return false;
    const Path path{&subject.path, {}, i, true};
    const NodeIndex node = i < rules.prefix.size() ? rules.prefix[i] : *rules.rest;
    is_valid = eval(node, {array[i], path}) && is_valid;
    if (subject.marks != nullptr) (*subject.marks)[i] = true;
  }
  return is_valid;
}

bool Evaluator::contained(const ArrayRules& rules, const Subject& subject) {
  const json::array& array = subject.value.get_array();
  size_t count = 0;
  for (size_t i = 0; i < array.size() && !has_given_up_; ++i) {
    const Path path{&subject.path, {}, i, true};
    if (!quietly(*rules.contains, {array[i], path})) continue;
    ++count;
    if (rules.marks_contained && subject.marks != nullptr) (*subject.marks)[i] = true;
  }
  if (count < rules.contains_min)
    return fail(subject.path,
                "must contain at least " + count_of(rules.contains_min, "items that match `contains`"));
  if (rules.contains_max && count > *rules.contains_max)
    return fail(subject.path,
                "must contain at most " + count_of(*rules.contains_max, "items that match `contains`"));
  return true;
}

bool Evaluator::unique(const Subject& subject) {
  const json::array& array = subject.value.get_array();
  std::unordered_multimap<size_t, const json::value*> seen;
  for (const json::value& item : array) {
    const size_t hash = hash_of(item, work_);
    const auto [first, last] = seen.equal_range(hash);
    for (auto other = first; other != last; ++other)
      if (is_equal(item, *other->second, work_)) return fail(subject.path, "must not contain equal items");
    if (work_ == 0) {
      has_given_up_ = true;
      return false;
    }
    seen.emplace(hash, &item);
  }
  return true;
}

bool Evaluator::unevaluated_members(const ObjectRules& rules, const Subject& subject) {
  bool is_valid = true;
  size_t place = 0;
  for (const auto& member : subject.value.get_object()) {
    if (!goes_on(is_valid)) return false;
    const Path path{&subject.path, member.key()};
    if (!(*subject.marks)[place]) is_valid = eval(*rules.unevaluated, {member.value(), path}) && is_valid;
    (*subject.marks)[place++] = true;
  }
  return is_valid;
}

bool Evaluator::unevaluated_items(const ArrayRules& rules, const Subject& subject) {
  const json::array& array = subject.value.get_array();
  bool is_valid = true;
  for (size_t i = 0; i < array.size(); ++i) {
    if (!goes_on(is_valid)) return false;
    const Path path{&subject.path, {}, i, true};
    if (!(*subject.marks)[i]) is_valid = eval(*rules.unevaluated, {array[i], path}) && is_valid;
    (*subject.marks)[i] = true;
  }
  return is_valid;
}

bool Schema::accepts(const json::value& document) const {
  return Evaluator(*program_, nullptr).run(document);
}

Report Schema::check(const json::value& document) const {
  if (accepts(document)) return {};
  Report report;
  report.is_valid = false;
  Evaluator evaluator(*program_, &report.violations);
  evaluator.run(document);
  report.gave_up = evaluator.has_given_up();
  return report;
}

}  // namespace postrider::schema
