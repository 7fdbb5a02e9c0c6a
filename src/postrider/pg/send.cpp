// The sending half of a session.
#include <fmt/format.h>

#include "postrider/base/check.hpp"
#include "postrider/pg/session.hpp"

namespace postrider::pg {

namespace {
constexpr int binary = 1;
constexpr Statement begin_statement{nullptr, "begin"};
constexpr size_t name_bytes_max = 40;  // Postgres compares 63 bytes, and a hash and a number follow

// FNV-1a, the same in every build.
uint64_t add_to_hash(uint64_t hash, std::string_view bytes) {
  constexpr uint64_t prime = 1'099'511'628'211U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * prime;
  return hash;
}
}  // namespace

std::string server_name_of(const Statement& statement, const std::vector<Oid>& types) {
  uint64_t hash = add_to_hash(14'695'981'039'346'656'037U, statement.text);
  for (const Oid type : types) hash = add_to_hash(hash, std::to_string(type) + ",");
  return fmt::format("{}.{:016x}", std::string_view(statement.name).substr(0, name_bytes_max), hash);
}

void Session::pump() {
  while (conn_ != nullptr && !is_taken_ && !waiting_.empty() && sent_.size() < options_.in_flight_max) {
    const UnitPtr unit = waiting_.front();
    waiting_.pop_front();
    if (unit->work == Unit::Work::turn) {
      is_taken_ = true;
      is_begun_ = false;
      finished_.push_back(unit);
    } else {
      send(unit);
    }
  }
}

void Session::send(const UnitPtr& unit) {
  watch_response();
  const bool is_sent = send_items(*unit);
  sent_.push_back(unit);
  if (!is_sent || PQpipelineSync(conn_) != 1) return fail(lost("cannot send"));
  flush();
}

bool Session::send_items(Unit& unit) {
  for (const Batch::Item& item : unit.batch.items())
    if (is_prepared(item.statement) && !prepare(item, unit)) return false;
  if (unit.is_opening && !send_item({begin_statement, Params()})) return false;
  for (const Batch::Item& item : unit.batch.items())
    if (!send_item(item)) return false;
  return true;
}

// A Parse has a sync of its own, so that it is kept even if the batch fails. It costs no round trip.
bool Session::prepare(const Batch::Item& item, Unit& user) {
  types_.clear();
  for (size_t i = 0; i < item.params.size(); ++i) types_.push_back(item.params.type(i));

  std::shared_ptr<Prepared>& known = prepared_[item.statement.name];
  if (known) {
    CHECK(known->types == types_);  // one statement, one list of C++ types
    if (!known->is_ready) user.relied_on.push_back(known);
    return true;
  }
  known = std::make_shared<Prepared>();
  known->types = types_;
  known->server_name = server_name_of(item.statement, types_);
  if (prepared_again_ > 0) known->server_name += "#" + std::to_string(prepared_again_);
  user.relied_on.push_back(known);

  auto unit = std::make_shared<Unit>(Unit::Work::prepare);
  unit->batch.add(item.statement);
  unit->made = known;
  sent_.push_back(unit);
  return PQsendPrepare(conn_, known->server_name.c_str(), item.statement.text,
                       static_cast<int>(types_.size()), types_.data()) == 1 &&
         PQpipelineSync(conn_) == 1;
}

bool Session::send_item(const Batch::Item& item) {
  const size_t count = item.params.size();
  values_.clear();
  lengths_.clear();
  types_.clear();
  formats_.assign(count, binary);
  for (size_t i = 0; i < count; ++i) {
    const bool is_null = item.params.is_null(i);
    const std::string_view value = is_null ? std::string_view() : item.params.value(i);
    values_.push_back(value.data());
    lengths_.push_back(static_cast<int>(value.size()));
    types_.push_back(item.params.type(i));
  }
  if (!is_prepared(item.statement))
    return PQsendQueryParams(conn_, item.statement.text, static_cast<int>(count), types_.data(),
                             values_.data(), lengths_.data(), formats_.data(), binary) == 1;
  const Prepared& prepared = *prepared_.at(item.statement.name);
  return PQsendQueryPrepared(conn_, prepared.server_name.c_str(), static_cast<int>(count), values_.data(),
                             lengths_.data(), formats_.data(), binary) == 1;
}

// Several statements in one text need the simple protocol, which libpq does not allow in pipeline mode.
// So it waits until nothing is in flight.
void Session::start_script() {
  if (!script_ || !sent_.empty() || conn_ == nullptr) return;
  watch_response();
  const UnitPtr unit = std::exchange(script_, nullptr);
  if (unit->is_opening) unit->sql.insert(0, "begin;\n");
  sent_.push_back(unit);
  is_script_running_ = true;
  if (PQexitPipelineMode(conn_) != 1 || PQsendQuery(conn_, unit->sql.c_str()) != 1)
    return fail(lost("cannot send the script"));
  flush();
}

void Session::flush() {
  const int left = PQflush(conn_);
  if (left < 0) return fail(lost("cannot send"));
  if (left == 0 || is_waiting_to_write_) return;
  is_waiting_to_write_ = true;
  socket_.async_wait(Descriptor::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->is_waiting_to_write_ = false;
                       if (error || self->conn_ == nullptr) return;
                       self->flush();
                     });
}

}  // namespace postrider::pg
