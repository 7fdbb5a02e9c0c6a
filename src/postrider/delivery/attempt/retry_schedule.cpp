#include "postrider/delivery/attempt/retry_schedule.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>

#include "postrider/base/check.hpp"

namespace postrider::delivery {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Delays = std::vector<milliseconds>;

constexpr double factor_max = 100;
constexpr double default_factor = 2;
constexpr double default_cap_seconds = 86'400;
constexpr double seconds_max = static_cast<double>(RetrySchedule::delay_max.count());

base::Failure<std::string> failure(std::string_view sentence) {
  return base::Failure{std::string(sentence)};
}

std::optional<double> number(const json::value& value) {
  if (value.is_int64()) return static_cast<double>(value.as_int64());
  if (value.is_uint64()) return static_cast<double>(value.as_uint64());
  // Boost.JSON parses 0e410 as NaN, for which every comparison is false.
  if (value.is_double() && std::isfinite(value.as_double())) return value.as_double();
  return std::nullopt;
}

milliseconds to_delay(double in_seconds) {
  return milliseconds(std::llround(in_seconds * 1000));
}

base::Result<Delays, std::string> from_list(const json::array& list) {
  if (list.empty()) return failure("must have at least one delay");
  if (list.size() > RetrySchedule::delays_max) return failure("must have at most 100 delays");
  Delays delays;
  for (const json::value& entry : list) {
    const std::optional<double> delay = number(entry);
    if (!delay || *delay < 0 || *delay > seconds_max)
      return failure("must be a list of seconds, each from 0 to 604800 (7 days)");
    delays.push_back(to_delay(*delay));
  }
  return delays;
}

base::Result<Delays, std::string> from_formula(const json::object& formula) {
  std::optional<double> base_seconds, factor = default_factor, cap = default_cap_seconds;
  for (const auto& [key, value] : formula) {
    if (key == "base_seconds") {
      base_seconds = number(value);
    } else if (key == "factor") {
      factor = number(value);
    } else if (key == "cap_seconds") {
      cap = number(value);
    } else {
      return failure("has the unknown field \"" + std::string(key) +
                     "\"; it takes base_seconds, factor and cap_seconds");
    }
  }
  if (!base_seconds || *base_seconds <= 0 || *base_seconds > seconds_max)
    return failure("must have base_seconds above 0 and up to 604800 (7 days)");
  if (!factor || *factor < 1 || *factor > factor_max) return failure("must have a factor from 1 to 100");
  if (!cap || *cap <= 0 || *cap > seconds_max)
    return failure("must have cap_seconds above 0 and up to 604800 (7 days)");

  Delays delays;
  double delay = *base_seconds;
  while (delays.size() < RetrySchedule::delays_max) {
    delays.push_back(to_delay(std::min(delay, *cap)));
    if (delay >= *cap || *factor == 1) break;
    delay *= *factor;
  }
  return delays;
}

}  // namespace

RetrySchedule::RetrySchedule() {
  static const auto usual =
      std::make_shared<const Delays>(Delays{seconds(30), seconds(120), seconds(600), seconds(1'800),
                                            seconds(7'200), seconds(21'600), seconds(86'400)});
  delays_ = usual;
}

base::Result<RetrySchedule, std::string> RetrySchedule::from_json(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error) return failure("must be JSON");
  if (value.is_null()) return RetrySchedule();
  if (!value.is_array() && !value.is_object())
    return failure("must be a list of seconds or an object with base_seconds, factor and cap_seconds");

  base::Result<Delays, std::string> delays =
      value.is_array() ? from_list(value.get_array()) : from_formula(value.get_object());
  if (!delays.ok()) return base::Failure{delays.error()};
  return RetrySchedule(std::make_shared<const Delays>(std::move(*delays)));
}

milliseconds RetrySchedule::delay_after(int attempt) const {
  CHECK(attempt >= 1);
  return (*delays_)[std::min(static_cast<size_t>(attempt) - 1, delays_->size() - 1)];
}

}  // namespace postrider::delivery
