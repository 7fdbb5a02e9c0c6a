// The result of one statement: rows in binary format, decoded on access without copying.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/pg/codec.hpp"

struct pg_result;

namespace postrider::pg {

class Rows {
 public:
  Rows() = default;  // no rows, as from a statement that returns none
  explicit Rows(pg_result* owned) : result_(owned) {}

  size_t size() const;
  bool empty() const { return size() == 0; }
  size_t columns() const;
  // Rows inserted, updated, deleted or selected.
  int64_t affected_rows() const;
  std::string_view command() const;  // "INSERT 0 1", "COMMIT"

  bool is_null(size_t row, size_t column) const;
  // T: what codec.hpp lists, optional<T> where null may occur, vector<T> for arrays. string_view, Bytes and
  // Json point into the Rows; text also reads enum, name, json and jsonb columns. Integers may be read wider
  // than they are. A null without optional, a type or length that does not fit, and a row or column that is
  // not there throw Error(other).
  template <class T>
  T get(size_t row, size_t column) const {
    if constexpr (is_optional<T>) {
      if (is_null(row, column)) return std::nullopt;
      return get<plain_t<T>>(row, column);
    } else {
      T value{};
      read(cell(row, column), value);
      return value;
    }
  }

 private:
  struct Cell {
    std::string_view bytes;
    Oid type;
    const Rows* rows;  // for the error message
    size_t column;
  };
  Cell cell(size_t row, size_t column) const;  // throws on null
  [[noreturn]] static void misfit(const Cell& cell, const char* wanted);
  static void require_bytes(const Cell& cell, size_t bytes);

  static void read(const Cell& cell, int16_t& value);
  static void read(const Cell& cell, int32_t& value);
  static void read(const Cell& cell, int64_t& value);
  static void read(const Cell& cell, bool& value);
  static void read(const Cell& cell, double& value);
  static void read(const Cell& cell, std::string_view& value);
  static void read(const Cell& cell, std::string& value);
  static void read(const Cell& cell, Bytes& value);
  static void read(const Cell& cell, Json& value);
  static void read(const Cell& cell, base::Uuid& value);
  static void read(const Cell& cell, base::Timestamp& value);

  struct Elements {
    Oid type;
    int32_t count;
    std::string_view rest;
  };
  static Elements elements(const Cell& cell);
  static bool next_element(const Cell& cell, Elements& elements, std::string_view& bytes);  // false: null

  template <class T>
  static void read(const Cell& array, std::vector<T>& values) {
    Elements remaining = elements(array);
    values.reserve(static_cast<size_t>(remaining.count));
    for (int32_t i = 0; i < remaining.count; ++i) {
      std::string_view bytes;
      const bool is_present = next_element(array, remaining, bytes);
      if constexpr (is_optional<T>) {
        if (!is_present) {
          values.push_back(std::nullopt);
          continue;
        }
      } else if (!is_present) {
        misfit(array, "an array without nulls");
      }
      plain_t<T> value{};
      read(Cell{bytes, remaining.type, array.rows, array.column}, value);
      values.push_back(std::move(value));
    }
  }

  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace postrider::pg
