// Binary format of the Postgres types that postrider uses, one Codec per C++ type. Params and Rows are built
// on it.
//
//   int16_t, int32_t, int64_t, bool, double      int2, int4, int8, bool, float8
//   string, string_view, const char*             text
//   Bytes                                        bytea
//   Json                                         jsonb (the text of a document)
//   base::Uuid, base::Timestamp                  uuid, timestamptz (time_point::max/min are ±infinity)
//   optional<T>, any range of T or optional<T>   null, one-dimensional array
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>

#include "postrider/base/time.hpp"
#include "postrider/base/uuid.hpp"

namespace postrider::pg {

using Oid = uint32_t;

struct Bytes {
  std::string_view view;
};
struct Json {
  std::string_view text;
};

inline constexpr base::Timestamp infinity = base::Timestamp::max();
inline constexpr base::Timestamp minus_infinity = base::Timestamp::min();

template <class T>
struct Codec;  // oid, array_oid, encode(out, value)

// Appends an integer in network order.
template <std::integral T>
void append_big_endian(std::string& out, T value) {
  if constexpr (sizeof(T) == 2)
    value = static_cast<T>(__builtin_bswap16(static_cast<uint16_t>(value)));
  else if constexpr (sizeof(T) == 4)
    value = static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(value)));
  else if constexpr (sizeof(T) == 8)
    value = static_cast<T>(__builtin_bswap64(static_cast<uint64_t>(value)));
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <>
struct Codec<int16_t> {
  static constexpr Oid oid = 21, array_oid = 1005;
  static void encode(std::string& out, int16_t value) { append_big_endian(out, value); }
};
template <>
struct Codec<int32_t> {
  static constexpr Oid oid = 23, array_oid = 1007;
  static void encode(std::string& out, int32_t value) { append_big_endian(out, value); }
};
template <>
struct Codec<int64_t> {
  static constexpr Oid oid = 20, array_oid = 1016;
  static void encode(std::string& out, int64_t value) { append_big_endian(out, value); }
};
template <>
struct Codec<bool> {
  static constexpr Oid oid = 16, array_oid = 1000;
  static void encode(std::string& out, bool value) { out.push_back(value ? '\1' : '\0'); }
};
template <>
struct Codec<double> {
  static constexpr Oid oid = 701, array_oid = 1022;
  static void encode(std::string& out, double value) {
    append_big_endian(out, std::bit_cast<int64_t>(value));
  }
};
template <class T>
  requires std::convertible_to<const T&, std::string_view>
struct Codec<T> {
  static constexpr Oid oid = 25, array_oid = 1009;
  static void encode(std::string& out, std::string_view value) { out.append(value); }
};
template <>
struct Codec<Bytes> {
  static constexpr Oid oid = 17, array_oid = 1001;
  static void encode(std::string& out, Bytes value) { out.append(value.view); }
};
template <>
struct Codec<Json> {
  static constexpr Oid oid = 3802, array_oid = 3807;
  static void encode(std::string& out, Json value) { out.append("\1").append(value.text); }
};
template <>
struct Codec<base::Uuid> {
  static constexpr Oid oid = 2950, array_oid = 2951;
  static void encode(std::string& out, const base::Uuid& value) {
    out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  }
};
template <>
struct Codec<base::Timestamp> {
  static constexpr Oid oid = 1184, array_oid = 1185;
  static constexpr int64_t epoch_microseconds = 946'684'800'000'000;  // 2000-01-01
  static void encode(std::string& out, base::Timestamp value) {
    const int64_t since_1970 = value.time_since_epoch().count();
    const bool is_finite = value != infinity && value != minus_infinity;
    append_big_endian(out, is_finite ? since_1970 - epoch_microseconds : since_1970);
  }
};

template <class T>
concept Scalar = requires { Codec<T>::oid; };

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
  using type = T;
};
// T without optional.
template <class T>
using plain_t = typename Plain<std::remove_cvref_t<T>>::type;

template <class T>
concept Array =
    !Scalar<T> && std::ranges::input_range<const T> && Scalar<plain_t<std::ranges::range_value_t<T>>>;

}  // namespace postrider::pg
