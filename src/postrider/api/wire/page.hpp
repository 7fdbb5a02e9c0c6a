// Query parameters: filters, `limit` and `cursor`. A cursor holds the key after which the next page begins.
// Callers see it only sealed (cursor_seal.hpp): write `next_cursor` as the last member of the response. Every
// list is bound to its tenant in SQL anyway.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/api/wire/problems.hpp"
#include "postrider/base/time.hpp"
#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"

namespace postrider::api {

inline constexpr int page_limit_default = 50;
inline constexpr int page_limit_max = 250;

// Errors of several fields and parameters.
inline constexpr auto time_rule = "must be an RFC 3339 timestamp, such as 2026-11-17T10:00:00Z";

class Query {
 public:
  explicit Query(const http::Request& request) : request_(request) {}

  // The value of a parameter; a second one of the same name is a problem. No value if it is missing.
  std::optional<std::string> value(std::string_view name);
  // From `since` up to `until`, which must be later; times are as in RFC 3339.
  struct Range {
    std::optional<base::Timestamp> since, until;
  };
  Range range();
  // An event type or a pattern that matches several.
  std::optional<std::string> pattern(std::string_view name);
  int limit();
  // The key that the page before ended with; empty for the first page.
  std::string after();
  void reject(std::string_view name, std::string detail);

  // Also reports unknown parameters. Empty if the query is valid.
  FieldProblems finish();

 private:
  std::optional<base::Timestamp> time(std::string_view name);

  const http::Request& request_;
  std::vector<std::string> known_;
  FieldProblems problems_;
};

std::string make_cursor(std::string_view last_key);

// {data, next_cursor?}. Items are JSON; the next page begins after `next`; without it this is the last page.
http::Response page(const std::vector<std::string>& items, const std::optional<std::string>& next);

// The same for a list that requested one row more than the limit, to know whether another page follows.
struct PageRow {
  std::string key;
  std::string json;
};
http::Response page(std::vector<PageRow> rows, int limit);

}  // namespace postrider::api
