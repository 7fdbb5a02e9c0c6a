#include "postrider/schema/pattern.hpp"

#include <re2/re2.h>

namespace postrider::schema {

namespace {

constexpr int64_t kMemoryMax = 256 << 10;
constexpr int kProgramMax = 2'000;
constexpr size_t kStepsPerWork = 16;  // steps of the slow matcher that cost as much as one node

// ECMAScript writes \uXXXX, RE2 \x{XXXX}.
std::string translated(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == 'u' && i + 6 <= text.size()) {
      out.append("\\x{").append(text.substr(i + 2, 4)).append("}");
      i += 5;
    } else {
      out.append(text.substr(i, 2));
      ++i;
    }
  }
  return out;
}

}  // namespace

Pattern::Pattern(std::shared_ptr<const re2::RE2> expression)
    : expression_(std::move(expression)), program_size_(static_cast<size_t>(expression_->ProgramSize())) {}

base::Result<Pattern, std::string> Pattern::compile(std::string_view text) {
  if (text.size() > kPatternBytesMax)
    return base::Failure{"must not be longer than " + std::to_string(kPatternBytesMax) + " bytes"};
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemoryMax);
  options.set_dot_nl(false);
  auto expression = std::make_shared<const re2::RE2>(translated(text), options);
  if (!expression->ok())
    return base::Failure{"is not a pattern that can be used (RE2 syntax, no look-around): " +
                         expression->error()};
  if (expression->ProgramSize() > kProgramMax) return base::Failure{std::string("is too large")};
  return Pattern(std::move(expression));
}

bool Pattern::is_found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *expression_);
}

size_t Pattern::work_for(std::string_view text) const {
  return 1 + text.size() * program_size_ / kStepsPerWork;
}

}  // namespace postrider::schema
