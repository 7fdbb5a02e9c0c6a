// Private to schema/: one check of one document. Bounded in depth and in work.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/schema/program.hpp"
#include "postrider/schema/schema.hpp"

namespace postrider::schema {

// About 50 ns each: a check ends within a tenth of a second, for any schema and document.
inline constexpr size_t kWorkMax = 1'000'000;
inline constexpr int kEvalDepthMax = 512;

class Evaluator {
 public:
  // `violations` null: only the verdict matters, and the first failure ends it.
  Evaluator(const Program& program, std::vector<Violation>* violations)
      : program_(program), violations_(violations) {}

  bool run(const boost::json::value& document);
  bool has_given_up() const { return has_given_up_; }

 private:
  // Where the value is; written out only when something is wrong with it.
  struct Path {
    const Path* parent = nullptr;
    std::string_view name{};
    size_t index = 0;
    bool is_index = false;
  };
  // The members or items that a keyword has evaluated, for unevaluated…; one flag each.
  using Marks = std::vector<bool>;

  // The value being evaluated, and where to mark its evaluated members (null: not needed).
  struct Subject {
    const boost::json::value& value;
    const Path& path;
    Marks* marks = nullptr;
  };

  bool eval(NodeIndex index, const Subject& subject);
  bool eval_node(const Subschema& node, const Subject& subject);
  bool references(const Subschema& node, const Subject& subject);
  bool plain(const Subschema& node, const Subject& subject);
  bool branches(const Branches& rules, const Subject& subject);
  bool any_or_one(const Branches& rules, const Subject& subject);
  bool choice(const Branches& rules, const Subject& subject);
  bool numbers(const NumberRules& rules, const Subject& subject);
  bool strings(const StringRules& rules, const Subject& subject);
  bool objects(const ObjectRules& rules, const Subject& subject);
  bool members(const ObjectRules& rules, const Subject& subject);
  bool dependents(const ObjectRules& rules, const Subject& subject);
  bool arrays(const ArrayRules& rules, const Subject& subject);
  bool items(const ArrayRules& rules, const Subject& subject);
  bool contained(const ArrayRules& rules, const Subject& subject);
  bool unique(const Subject& subject);
  bool unevaluated_members(const ObjectRules& rules, const Subject& subject);
  bool unevaluated_items(const ArrayRules& rules, const Subject& subject);
  // Without complaints: a branch that may fail.
  bool quietly(NodeIndex index, const Subject& subject);
  bool branch(NodeIndex index, const Subject& subject);
  NodeIndex dynamic_target(const Subschema& node) const;

  bool fail(const Path& path, std::string detail);
  bool found(const Pattern& pattern, std::string_view text);
  void spend(size_t work);
  // After a failure: continue only to collect more of them.
  bool goes_on(bool is_valid) const { return !has_given_up_ && (is_valid || is_collecting()); }
  bool is_collecting() const { return violations_ != nullptr && quiet_ == 0; }

  const Program& program_;
  std::vector<Violation>* violations_;
  std::vector<uint32_t> scope_;  // resources entered, the outermost first
  size_t work_ = kWorkMax;
  int depth_ = 0;
  int quiet_ = 0;
  bool has_given_up_ = false;
};

}  // namespace postrider::schema
