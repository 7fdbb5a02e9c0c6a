#include "postrider/outbox/slot_reader.hpp"

#include <algorithm>

#include "postrider/outbox/pgoutput.hpp"

namespace postrider::outbox {

namespace {

using runtime::Task;

constexpr int kFailoverSlots = 170'000;  // server versions
constexpr int kOptionList = 150'000;

std::string create_command(const std::string& slot, int server_version) {
  const std::string command = "CREATE_REPLICATION_SLOT \"" + slot + "\" LOGICAL pgoutput ";
  if (server_version >= kFailoverSlots) return command + "(SNAPSHOT 'nothing', FAILOVER true)";
  if (server_version >= kOptionList) return command + "(SNAPSHOT 'nothing')";
  return command + "NOEXPORT_SNAPSHOT";
}

std::string start_command(const std::string& slot) {
  return "START_REPLICATION SLOT \"" + slot +
         "\" LOGICAL 0/0 (proto_version '1', publication_names 'postrider', messages 'true')";
}

}  // namespace

SlotReader::SlotReader(runtime::Loop& loop, SlotReaderOptions options, telemetry::Counter ignored)
    : loop_(loop), options_(std::move(options)), ignored_(ignored) {}

Task<void> SlotReader::make_slot(std::string name) {
  close();
  stream_ = std::make_unique<pg::ReplicationStream>(loop_, options_.connect);
  co_await stream_->connect();
  co_await stream_->command(create_command(name, stream_->server_version()));
  close();
}

Task<void> SlotReader::open(std::string name, LogPosition taken) {
  close();
  taken_ = taken;
  stream_ = std::make_unique<pg::ReplicationStream>(loop_, options_.connect);
  co_await stream_->connect();
  co_await stream_->start(start_command(name));
}

void SlotReader::interrupt() {
  if (stream_) stream_->close();
}

void SlotReader::close() {
  stream_.reset();
  batch_.clear();
  batch_bytes_ = 0;
  transaction_ = {};
  done_ = confirmed_ = {};
}

bool SlotReader::collect(std::string_view key) {
  while (batch_.size() < static_cast<size_t>(options_.rows_max) && batch_bytes_ < options_.bytes_max) {
    const auto frame = stream_->next();
    if (!frame) return true;
    if (frame->is_keepalive)
      done_ = std::max(done_, frame->end);
    else
      accept(frame->bytes, key);
  }
  return false;
}

void SlotReader::accept(std::string_view bytes, std::string_view key) {
  const auto change = decode(bytes);
  if (!change)
    throw pg::Error(pg::Kind::other, "the replication slot sent data that is not in pgoutput's format");
  if (const auto* begin = std::get_if<Begin>(&*change)) transaction_ = begin->commit;
  if (const auto* commit = std::get_if<Commit>(&*change)) done_ = std::max(done_, commit->end);
  const auto* emitted = std::get_if<Emitted>(&*change);
  if (emitted == nullptr || !emitted->is_transactional || emitted->prefix != kMessagePrefix) return;
  const LogPosition position{transaction_, emitted->at};
  if (position <= taken_) return;
  auto message = read_message(emitted->content, key);
  if (!message) {
    ignored_.add();
    return;
  }
  message->position = position;
  batch_bytes_ += static_cast<int64_t>(message->bytes.size());
  batch_.push_back(std::move(*message));
}

void SlotReader::batch_done() {
  if (!batch_.empty()) taken_ = batch_.back().position;
  batch_.clear();
  batch_bytes_ = 0;
}

void SlotReader::confirm(bool is_reply_wanted) {
  stream_->confirm(done_, is_reply_wanted);
  confirmed_ = done_;
}

void SlotReader::beat() {
  stream_->confirm(confirmed_);
}

Task<void> SlotReader::wait(runtime::SteadyTime deadline) {
  co_await stream_->wait(deadline);
}

}  // namespace postrider::outbox
