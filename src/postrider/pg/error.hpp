// Errors of the database, by what the caller can do about them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace postrider::pg {

enum class Kind {
  retry,    // rolled back for a temporary reason (deadlock, lock or statement timeout): run the batch again
  item,     // rolled back because of the data of some item (classes 22, 23, 54): bisect to find it
  unknown,  // the connection was lost after sending: committed or not. Repeat with the same ids
  unavailable,  // no connection, or too many batches are waiting: nothing was done
  other,        // rolled back for any other reason, usually a bug or a missing privilege
};

const char* to_string(Kind kind);
Kind kind_of(std::string_view sqlstate);

// For Kind::other: the server cannot write anything at the moment (out of disk, memory or connections, an I/O
// error). The same statement will work once that is fixed.
bool is_server_fault(std::string_view sqlstate);

class Error : public std::runtime_error {
 public:
  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  struct Report {
    std::string sqlstate;
    std::string message;     // primary message, with detail and statement name where there are any
    std::string constraint;  // the violated constraint, or empty
  };
  explicit Error(Report report)
      : std::runtime_error(report.message), kind_(kind_of(report.sqlstate)), report_(std::move(report)) {}
  Error(Kind kind, Report report)
      : std::runtime_error(report.message), kind_(kind), report_(std::move(report)) {}

  Kind kind() const { return kind_; }
  // Empty if the error did not come from the server.
  const std::string& sqlstate() const { return report_.sqlstate; }
  const std::string& constraint() const { return report_.constraint; }
  bool is_server_fault() const { return pg::is_server_fault(report_.sqlstate); }
  // The statement or its data caused the error, so it would fail again.
  bool is_permanent() const { return kind_ == Kind::item || (kind_ == Kind::other && !is_server_fault()); }

 private:
  Kind kind_;
  Report report_;
};

}  // namespace postrider::pg
