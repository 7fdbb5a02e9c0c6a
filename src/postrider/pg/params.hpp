// The parameters of one statement, encoded at once into one growing buffer in binary format.
//
// Each parameter also carries its type, which is declared when the statement is prepared. In SQL every
// parameter is cast ($1::uuid[]), so that the text is complete by itself; the cast also covers harmless
// differences (int4 given where bigint is meant, text for an enum or jsonb). A statement must always be given
// the same C++ types: its first use on a connection fixes them, and using others later is a bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/pg/codec.hpp"

namespace postrider::pg {

template <class T>
class ArrayOf;
template <class T>
inline constexpr bool is_array_reference = false;
template <class T>
inline constexpr bool is_array_reference<ArrayOf<T>> = true;
template <class T>
struct ArrayElement;
template <class T>
struct ArrayElement<ArrayOf<T>> {
  using type = T;
};

class Params {
 public:
  Params() = default;
  template <class... T>
    requires(sizeof...(T) > 0 && (!std::same_as<std::remove_cvref_t<T>, Params> && ...))
  explicit Params(const T&... values) {
    slots_.reserve(sizeof...(T));
    (add(values), ...);
  }

  // A value, an optional (null when empty), or a range of either (an array).
  template <class T>
  Params& add(const T& value) {
    if constexpr (is_optional<T>) {
      return value ? add(*value) : null<plain_t<T>>();
    } else if constexpr (is_array_reference<T>) {
      value.add_to(*this);
      return *this;
    } else if constexpr (Scalar<T>) {
      const size_t start = begin(Codec<T>::oid);
      Codec<T>::encode(bytes_, value);
      return end(start);
    } else {
      static_assert(Array<T>, "no Postgres type is known for this C++ type");
      return add_array(value);
    }
  }

  // A null of the type that T has.
  template <class T>
  Params& null() {
    if constexpr (Scalar<T>)
      begin(Codec<T>::oid);
    else if constexpr (is_array_reference<T>)
      begin(Codec<typename ArrayElement<T>::type>::array_oid);
    else
      begin(Codec<plain_t<std::ranges::range_value_t<T>>>::array_oid);
    return *this;
  }

  size_t size() const { return slots_.size(); }
  size_t bytes() const { return bytes_.size(); }
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  Params& reserve_slots(size_t count) {
    slots_.reserve(count);
    return *this;
  }

  Oid type(size_t index) const { return slots_[index].type; }
  bool is_null(size_t index) const { return slots_[index].length < 0; }
  std::string_view value(size_t index) const {
    return std::string_view(bytes_).substr(slots_[index].start, static_cast<size_t>(slots_[index].length));
  }

 private:
  struct Slot {
    size_t start;
    int32_t length;  // -1: null
    Oid type;
  };

  size_t begin(Oid type) {
    slots_.push_back({bytes_.size(), -1, type});
    return bytes_.size();
  }
  Params& end(size_t start);
  void put_int32(size_t at, int32_t value);

  template <class T>
  Params& add_array(const T& values) {
    using Element = std::ranges::range_value_t<T>;
    using ElementCodec = Codec<plain_t<Element>>;
    const size_t start = begin(ElementCodec::array_oid);
    // dimensions, has nulls, element type, number of elements, lower bound
    bytes_.append(20, '\0');
    int32_t count = 0;
    bool has_null = false;
    for (const auto& item : values) {
      ++count;
      const size_t length_at = bytes_.size();
      bytes_.append(4, '\0');
      if constexpr (is_optional<Element>) {
        if (!item) {
          has_null = true;
          put_int32(length_at, -1);
          continue;
        }
        ElementCodec::encode(bytes_, *item);
      } else {
        ElementCodec::encode(bytes_, item);
      }
      put_int32(length_at, static_cast<int32_t>(bytes_.size() - length_at - 4));
    }
    put_int32(start, count == 0 ? 0 : 1);
    put_int32(start + 4, has_null ? 1 : 0);
    put_int32(start + 8, static_cast<int32_t>(ElementCodec::oid));
    put_int32(start + 12, count);
    put_int32(start + 16, 1);
    if (count == 0) bytes_.resize(start + 12);
    return end(start);
  }

  std::string bytes_;
  std::vector<Slot> slots_;
};

}  // namespace postrider::pg
