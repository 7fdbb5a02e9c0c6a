// Private to schema/: JSON values as JSON Schema compares them: 1 and 1.0 are the same number.
#pragma once

#include <boost/json/value.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace postrider::schema {

bool is_integer(const boost::json::value& value);
// Both are numbers.
std::partial_ordering compare_numbers(const boost::json::value& a, const boost::json::value& b);
bool is_multiple(const boost::json::value& number, const boost::json::value& of);

// `work` is reduced by the number of values read; at 0 the result is meaningless.
bool is_equal(const boost::json::value& a, const boost::json::value& b, size_t& work);
// Equal values have equal hashes.
size_t hash_of(const boost::json::value& value, size_t& work);

size_t count_characters(std::string_view utf8);

}  // namespace postrider::schema
