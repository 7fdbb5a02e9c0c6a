// JSON Schema, drafts 2020-12 and 07: compiled once, then used for many documents, from any thread.
//
// Schemas and documents come from outside, so everything is bounded: the size of a schema, its patterns (RE2:
// linear time; other patterns are rejected), the depth, and the work of one check. Nothing is ever fetched: a
// $ref must stay inside the document. `format` and `content…` are annotations and assert nothing.
#pragma once

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/base/result.hpp"

namespace postrider::schema {

inline constexpr size_t kSchemaBytesMax = 256 << 10;
inline constexpr size_t kViolationsMax = 10;

struct Violation {
  std::string pointer;  // RFC 6901: into the document, or into the schema when that is at fault
  std::string detail;   // "must be a string"
};

struct Report {
  bool is_valid = true;
  bool gave_up = false;  // it would have taken more work than one document is worth; not valid then
  std::vector<Violation> violations;  // the first ones, when it is not valid
};

struct Program;

class Schema {
 public:
  // `$schema` decides the draft; without one, 2020-12. The failure has the error in the schema.
  static base::Result<Schema, Violation> compile(std::string_view text);

  // True if the document matches. Cheap, and allocates nothing for plain schemas.
  bool accepts(const boost::json::value& document) const;
  // The same with reasons.
  Report check(const boost::json::value& document) const;

 private:
  explicit Schema(std::shared_ptr<const Program> program) : program_(std::move(program)) {}

  std::shared_ptr<const Program> program_;  // shared: immutable, and held by every thread's cache
};

}  // namespace postrider::schema
