// Rows of an outbox as a hostile server may send them: any type, length and content in any column. Nothing
// but pg::Error is thrown, and a row without a fault becomes one JSON object with the same tenant and type,
// and headers of one line each.
//
// An input is one field per column, separated by byte 0x1e. Its first character says what the server calls
// it:
// '!' null, 'u' uuid, '8' bigint, '4' integer, 'z' timestamptz, 'j' jsonb, 'b' bytea, anything else the type
// that the column should have. The bytes follow.
#include <libpq-fe.h>

#include <array>
#include <boost/json/parse.hpp>
#include <string>

#include "fuzz.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/model/event_type.hpp"
#include "postrider/outbox/row.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/publish/envelope.hpp"

using namespace postrider;

namespace {

constexpr pg::Oid kText = 25, kBigint = 20, kInteger = 23, kUuid = 2950, kTime = 1184, kJsonb = 3802,
                  kBytea = 17;
constexpr std::array<pg::Oid, 12> kColumns{kBigint, kBigint, kUuid, kText, kText, kText,
                                           kText,   kText,   kTime, kText, kText, kTime};

pg::Oid type_of(char kind, pg::Oid usual) {
  switch (kind) {
    case 'u':
      return kUuid;
    case '8':
      return kBigint;
    case '4':
      return kInteger;
    case 'z':
      return kTime;
    case 'j':
      return kJsonb;
    case 'b':
      return kBytea;
    default:
      return usual;
  }
}

pg::Rows rows_of(std::string_view input) {
  PGresult* result = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  std::array<PGresAttDesc, kColumns.size()> attributes{};
  std::array<std::string, kColumns.size()> values;
  std::array<bool, kColumns.size()> are_null{};
  std::string name = "column";
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const std::string_view field = input.substr(0, input.find('\x1e'));
    input.remove_prefix(std::min(input.size(), field.size() + 1));
    const char kind = field.empty() ? '!' : field.front();
    are_null[i] = kind == '!';
    values[i] = field.empty() ? "" : std::string(field.substr(1));
    attributes[i].name = name.data();
    attributes[i].typid = type_of(kind, kColumns[i]);
    attributes[i].format = 1;
  }
  CHECK(PQsetResultAttrs(result, static_cast<int>(attributes.size()), attributes.data()) == 1);
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(PQsetvalue(result, 0, static_cast<int>(i), values[i].data(),
                     are_null[i] ? -1 : static_cast<int>(values[i].size())) == 1);
  return pg::Rows(result);
}

void check_good(outbox::OutboxRow& row) {
  publish::NewEvent& event = row.event;
  const std::string id = event.id.value_or(event.given_id->public_id());
  const std::string body = publish::envelope(event, id, base::to_rfc3339(*event.written_at));
  std::string lines;
  CHECK(http::append_header(lines, "webhook-id", id));
  if (!event.traceparent.empty()) CHECK(http::append_header(lines, "traceparent", event.traceparent));
  CHECK(std::count(lines.begin(), lines.end(), '\n') == (event.traceparent.empty() ? 1 : 2));
  CHECK(model::patterns_matching(event.type).size() <= model::kEventTypeMax + 1);
  CHECK(event.tenant_id != model::kReservedTenant);
  // Numbers and lone surrogates that Boost.JSON cannot hold are JSON all the same.
  boost::json::parse_options options;
  options.max_depth = 300;
  boost::json::error_code failure;
  const auto document = boost::json::parse(body, failure, {}, options);
  if (failure) return;
  CHECK(document.is_object());
  CHECK(document.at("tenant_id").as_string() == event.tenant_id &&
        document.at("type").as_string() == event.type);
  CHECK(document.as_object().size() == (event.version ? 6u : 5u));
}

}  // namespace

void fuzz_one(std::string_view input) {
  const pg::Rows rows = rows_of(input);
  try {
    for (outbox::OutboxRow& row : outbox::read_rows(rows)) {
      const auto error = outbox::error_of(row);
      CHECK(!error || error->size() < 2'000);
      if (!error) check_good(row);
    }
  } catch (const pg::Error&) {
    // The table is not one of ours: the relay says so and tries again.
  }
}
