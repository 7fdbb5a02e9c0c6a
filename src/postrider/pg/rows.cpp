#include "postrider/pg/rows.hpp"

#include <libpq-fe.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>

#include "postrider/pg/error.hpp"

namespace postrider::pg {

namespace {

constexpr Oid oid_jsonb = Codec<Json>::oid;

int64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<uint8_t>(byte);
  return static_cast<int64_t>(value);
}

bool is_integer(Oid type) {
  return type == Codec<int16_t>::oid || type == Codec<int32_t>::oid || type == Codec<int64_t>::oid;
}

// Of 2, 4 or 8 bytes.
int64_t read_integer(std::string_view bytes) {
  switch (bytes.size()) {
    case 2:
      return static_cast<int16_t>(big_endian(bytes));
    case 4:
      return static_cast<int32_t>(big_endian(bytes));
    default:
      return big_endian(bytes);
  }
}

size_t integer_bytes(Oid type) {
  if (type == Codec<int16_t>::oid) return 2;
  return type == Codec<int32_t>::oid ? 4 : 8;
}

}  // namespace

void Rows::Clear::operator()(pg_result* result) const {
  PQclear(result);
}

size_t Rows::size() const {
  return result_ ? static_cast<size_t>(PQntuples(result_.get())) : 0;
}

size_t Rows::columns() const {
  return result_ ? static_cast<size_t>(PQnfields(result_.get())) : 0;
}

int64_t Rows::affected_rows() const {
  if (!result_) return 0;
  const std::string_view text = PQcmdTuples(result_.get());
  int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

std::string_view Rows::command() const {
  return result_ ? PQcmdStatus(result_.get()) : std::string_view();
}

bool Rows::is_null(size_t row, size_t column) const {
  // Not a bug of ours: tables that should have one row can be emptied, and another server can send anything.
  if (row >= size() || column >= columns())
    throw Error(Kind::other,
                "the result has no row " + std::to_string(row) + " with a column " + std::to_string(column));
  return PQgetisnull(result_.get(), static_cast<int>(row), static_cast<int>(column)) == 1;
}

Rows::Cell Rows::cell(size_t row, size_t column) const {
  const int r = static_cast<int>(row);
  const int c = static_cast<int>(column);
  const bool is_absent = is_null(row, column);
  const Cell found{{PQgetvalue(result_.get(), r, c), static_cast<size_t>(PQgetlength(result_.get(), r, c))},
                   PQftype(result_.get(), c),
                   this,
                   column};
  if (is_absent) misfit(found, "a value that is not null");
  return found;
}

void Rows::misfit(const Cell& cell, const char* wanted) {
  const char* name = PQfname(cell.rows->result_.get(), static_cast<int>(cell.column));
  throw Error(Kind::other, "column " + std::to_string(cell.column) + " (" + (name ? name : "") + ", type " +
                               std::to_string(cell.type) + ") is not " + wanted);
}

// The server sends the length of a value, and a server other than Postgres may send anything.
void Rows::require_bytes(const Cell& cell, size_t bytes) {
  if (cell.bytes.size() != bytes) misfit(cell, "as long as its type is");
}

void Rows::read(const Cell& cell, int16_t& value) {
  if (cell.type != Codec<int16_t>::oid) misfit(cell, "smallint");
  require_bytes(cell, sizeof value);
  value = static_cast<int16_t>(read_integer(cell.bytes));
}

void Rows::read(const Cell& cell, int32_t& value) {
  if (!is_integer(cell.type) || cell.type == Codec<int64_t>::oid) misfit(cell, "integer");
  require_bytes(cell, integer_bytes(cell.type));
  value = static_cast<int32_t>(read_integer(cell.bytes));
}

void Rows::read(const Cell& cell, int64_t& value) {
  // oid, xid8 and similar types are read as numbers, too.
  constexpr Oid oid_oid = 26, oid_xid8 = 5069;
  if (cell.type == oid_oid) {
    require_bytes(cell, sizeof(uint32_t));
    value = static_cast<uint32_t>(big_endian(cell.bytes));
    return;
  }
  if (!is_integer(cell.type) && cell.type != oid_xid8) misfit(cell, "bigint");
  require_bytes(cell, integer_bytes(cell.type));
  value = read_integer(cell.bytes);
}

void Rows::read(const Cell& cell, bool& value) {
  if (cell.type != Codec<bool>::oid) misfit(cell, "boolean");
  require_bytes(cell, 1);
  value = cell.bytes[0] != '\0';
}

void Rows::read(const Cell& cell, double& value) {
  constexpr Oid oid_float4 = 700;
  if (cell.type != Codec<double>::oid && cell.type != oid_float4) misfit(cell, "double precision");
  require_bytes(cell, cell.type == oid_float4 ? sizeof(float) : sizeof(double));
  if (cell.type == oid_float4)
    value = std::bit_cast<float>(static_cast<uint32_t>(big_endian(cell.bytes)));
  else
    value = std::bit_cast<double>(big_endian(cell.bytes));
}

void Rows::read(const Cell& cell, std::string_view& value) {
  constexpr Oid oid_char = 18, oid_name = 19, oid_text = 25, oid_json = 114, oid_bpchar = 1042,
                oid_varchar = 1043;
  constexpr Oid oid_user_min = 16384;  // an enum of ours: its label
  switch (cell.type) {
    case oid_char:
    case oid_name:
    case oid_text:
    case oid_json:
    case oid_bpchar:
    case oid_varchar:
      value = cell.bytes;
      return;
    case oid_jsonb:
      if (cell.bytes.empty()) misfit(cell, "jsonb");
      value = cell.bytes.substr(1);
      return;
    default:
      if (cell.type < oid_user_min) misfit(cell, "text");
      value = cell.bytes;
  }
}

void Rows::read(const Cell& cell, std::string& value) {
  std::string_view view;
  read(cell, view);
  value = view;
}

void Rows::read(const Cell& cell, Bytes& value) {
  if (cell.type != Codec<Bytes>::oid) misfit(cell, "bytea");
  value.view = cell.bytes;
}

void Rows::read(const Cell& cell, Json& value) {
  constexpr Oid oid_json = 114;
  if (cell.type != oid_jsonb && cell.type != oid_json) misfit(cell, "jsonb");
  read(cell, value.text);
}

void Rows::read(const Cell& cell, base::Uuid& value) {
  if (cell.type != Codec<base::Uuid>::oid) misfit(cell, "uuid");
  require_bytes(cell, value.bytes.size());
  std::memcpy(value.bytes.data(), cell.bytes.data(), value.bytes.size());
}

void Rows::read(const Cell& cell, base::Timestamp& value) {
  if (cell.type != Codec<base::Timestamp>::oid) misfit(cell, "timestamptz");
  require_bytes(cell, sizeof(int64_t));
  // The year 294276 is the last that Postgres has; later times are treated as infinite.
  constexpr int64_t kSince2000Max =
      std::numeric_limits<int64_t>::max() - Codec<base::Timestamp>::epoch_microseconds;
  const int64_t since_2000 = big_endian(cell.bytes);
  if (since_2000 == std::numeric_limits<int64_t>::min())
    value = minus_infinity;
  else if (since_2000 > kSince2000Max)
    value = infinity;
  else
    value = base::Timestamp(base::Microseconds(since_2000 + Codec<base::Timestamp>::epoch_microseconds));
}

Rows::Elements Rows::elements(const Cell& cell) {
  // dimensions, has nulls, element type, then per dimension: number of elements, lower bound
  if (cell.bytes.size() < 12) misfit(cell, "an array");
  const int64_t dimensions = big_endian(cell.bytes.substr(0, 4));
  const Oid type = static_cast<Oid>(big_endian(cell.bytes.substr(8, 4)));
  if (dimensions == 0 && cell.bytes.size() == 12) return {type, 0, {}};
  if (dimensions != 1 || cell.bytes.size() < 20) misfit(cell, "an array of one dimension");
  const auto count = static_cast<int32_t>(big_endian(cell.bytes.substr(12, 4)));
  const std::string_view rest = cell.bytes.substr(20);
  if (count < 0 || static_cast<size_t>(count) > rest.size() / 4) misfit(cell, "an array");
  return {type, count, rest};
}

bool Rows::next_element(const Cell& cell, Elements& elements, std::string_view& bytes) {
  if (elements.rest.size() < 4) misfit(cell, "an array");
  const auto length = static_cast<int32_t>(big_endian(elements.rest.substr(0, 4)));
  elements.rest.remove_prefix(4);
  if (length < 0) return false;
  if (elements.rest.size() < static_cast<size_t>(length)) misfit(cell, "an array");
  bytes = elements.rest.substr(0, static_cast<size_t>(length));
  elements.rest.remove_prefix(static_cast<size_t>(length));
  return true;
}

}  // namespace postrider::pg
