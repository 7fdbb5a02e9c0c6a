#include "postrider/pg/error.hpp"

namespace postrider::pg {

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::retry:
      return "retry";
    case Kind::item:
      return "item";
    case Kind::unknown:
      return "unknown";
    case Kind::unavailable:
      return "unavailable";
    case Kind::other:
      return "other";
  }
  return "other";
}

Kind kind_of(std::string_view sqlstate) {
  if (sqlstate == "40001" || sqlstate == "40P01" || sqlstate == "55P03" || sqlstate == "57014")
    return Kind::retry;
  const std::string_view sql_class = sqlstate.substr(0, 2);
  if (sql_class == "22" || sql_class == "23" || sql_class == "54") return Kind::item;
  if (sql_class == "08" || sqlstate.substr(0, 3) == "57P") return Kind::unknown;
  return Kind::other;
}

// Not class XX: a damaged row or page also raises it, and would raise it again.
bool is_server_fault(std::string_view sqlstate) {
  const std::string_view sql_class = sqlstate.substr(0, 2);
  return sql_class == "53" || sql_class == "58";
}

}  // namespace postrider::pg
