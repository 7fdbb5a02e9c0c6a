#include "postrider/schema/values.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <functional>

namespace postrider::schema {

namespace {

namespace json = boost::json;

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr double kTolerance = 1e-9;

// The double's exact place among the integers decides; both sides may be beyond what the other can hold.
std::partial_ordering compare(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kTwoTo63) return std::partial_ordering::less;
  if (b < -kTwoTo63) return std::partial_ordering::greater;
  const auto whole = static_cast<int64_t>(b);
  if (a != whole) return a <=> whole;
  return 0.0 <=> (b - std::trunc(b));
}

std::partial_ordering compare(uint64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 2 * kTwoTo63) return std::partial_ordering::less;
  if (b < 0) return std::partial_ordering::greater;
  const auto whole = static_cast<uint64_t>(b);
  if (a != whole) return a <=> whole;
  return 0.0 <=> (b - std::trunc(b));
}

std::partial_ordering compare(int64_t a, uint64_t b) {
  if (a < 0) return std::partial_ordering::less;
  return static_cast<uint64_t>(a) <=> b;
}

std::partial_ordering reversed(std::partial_ordering order) {
  return 0 <=> order;
}

bool spend(size_t& work) {
  if (work == 0) return false;
  --work;
  return true;
}

size_t mix(size_t seed, size_t more) {
  return seed ^ (more + 0x9e3779b97f4a7c15 + (seed << 6) + (seed >> 2));
}

}  // namespace

bool is_integer(const json::value& value) {
  if (value.is_int64() || value.is_uint64()) return true;
  if (!value.is_double()) return false;
  const double number = value.get_double();
  return std::isfinite(number) && number == std::trunc(number);
}

std::partial_ordering compare_numbers(const json::value& a, const json::value& b) {
  if (a.is_double()) {
    if (b.is_double()) return a.get_double() <=> b.get_double();
    return reversed(compare_numbers(b, a));
  }
  if (a.is_int64()) {
    if (b.is_int64()) return a.get_int64() <=> b.get_int64();
    return b.is_uint64() ? compare(a.get_int64(), b.get_uint64()) : compare(a.get_int64(), b.get_double());
  }
  if (b.is_uint64()) return a.get_uint64() <=> b.get_uint64();
  return b.is_int64() ? reversed(compare(b.get_int64(), a.get_uint64()))
                      : compare(a.get_uint64(), b.get_double());
}

bool is_multiple(const json::value& number, const json::value& of) {
  if (number.is_int64() && of.is_int64() && of.get_int64() > 0)
    return number.get_int64() % of.get_int64() == 0;
  const double quotient = number.to_number<double>() / of.to_number<double>();
  if (!std::isfinite(quotient)) return false;
  // 0.0075 is a multiple of 0.0001 for people, although not quite for the machine.
  return std::abs(quotient - std::round(quotient)) <= kTolerance * std::max(1.0, std::abs(quotient)) &&
         std::abs(quotient - std::round(quotient)) < 0.25;
}

bool is_equal(const json::value& a, const json::value& b, size_t& work) {
  if (!spend(work)) return false;
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (const auto* array = a.if_array()) {
    const json::array& other = b.get_array();
    return std::equal(array->begin(), array->end(), other.begin(), other.end(),
                      [&work](const json::value& x, const json::value& y) { return is_equal(x, y, work); });
  }
  if (const auto* object = a.if_object()) {
    const json::object& other = b.get_object();
    if (object->size() != other.size()) return false;
    return std::all_of(object->begin(), object->end(), [&other, &work](const auto& member) {
      const json::value* same = other.if_contains(member.key());
      return same != nullptr && is_equal(member.value(), *same, work);
    });
  }
  return a == b;
}

size_t hash_of(const json::value& value, size_t& work) {
  if (!spend(work)) return 0;
  if (value.is_number()) return std::hash<double>()(value.to_number<double>() + 0.0);
  size_t seed = static_cast<size_t>(value.kind());
  if (const auto* text = value.if_string()) return mix(seed, std::hash<std::string_view>()(*text));
  if (const auto* array = value.if_array()) {
    for (const json::value& item : *array) seed = mix(seed, hash_of(item, work));
  } else if (const auto* object = value.if_object()) {
    for (const auto& member : *object)  // in any order
      seed += mix(std::hash<std::string_view>()(member.key()), hash_of(member.value(), work));
  } else if (value.is_bool()) {
    seed = mix(seed, value.get_bool() ? 1 : 2);
  }
  return seed;
}

size_t count_characters(std::string_view utf8) {
  return static_cast<size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace postrider::schema
