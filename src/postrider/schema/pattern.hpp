// Private to schema/: a regular expression as JSON Schema means it, run by RE2 in linear time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "postrider/base/result.hpp"

namespace re2 {
class RE2;
}

namespace postrider::schema {

inline constexpr size_t kPatternBytesMax = 1'000;

class Pattern {
 public:
  // The failure is a sentence about the pattern: look-around and back references are not supported.
  static base::Result<Pattern, std::string> compile(std::string_view text);

  // Anywhere in the text, as the standard says.
  bool is_found_in(std::string_view text) const;
  // In the unit of Evaluator's work: what looking at this text can cost at worst.
  size_t work_for(std::string_view text) const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> expression);

  std::shared_ptr<const re2::RE2> expression_;  // shared: nodes are moved about while compiling
  size_t program_size_;
};

}  // namespace postrider::schema
