// Query parameters: filters, `limit` and `cursor`. A cursor says behind which key the next page begins.
// Callers only see it sealed (cursor_seal.hpp): write `next_cursor` as the last member of the answer. Every
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

  // The value of a parameter; a second one of the same name is a problem. Nothing if it is not there.
  std::optional<std::string> value(std::string_view name);
  // From `since` up to `until`, which must be later; times are as in RFC 3339.
  struct Range {
    std::optional<base::Timestamp> since, until;
  };
  Range range();
  int limit();
  // The key that the page before ended with; empty for the first page.
  std::string after();
  void refuse(std::string_view name, std::string detail);

  // Parameters nobody asked for are problems, too. Empty: all is well.
  FieldProblems finish();

 private:
  std::optional<base::Timestamp> time(std::string_view name);

  const http::Request& request_;
  std::vector<std::string> known_;
  FieldProblems problems_;
};

std::string make_cursor(std::string_view last_key);

// {data, next_cursor?}. Items are JSON; the next page begins behind `next`, and there is none without it.
http::Response page(const std::vector<std::string>& items, const std::optional<std::string>& next);

// The same of a list that asked for one row more than the limit, to know whether more follows.
struct PageRow {
  std::string key;
  std::string json;
};
http::Response page(std::vector<PageRow> rows, int limit);

}  // namespace postrider::api
