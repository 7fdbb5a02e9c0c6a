#include "postrider/telemetry/log.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <thread>

#include "postrider/base/check.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/base/time.hpp"

namespace postrider::telemetry {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGather{2};  // lines that follow within it share a write
constexpr milliseconds kPatience{
    1000};  // how long flush() and the destructor wait for a reader that does not read
constexpr size_t kPieceBytes = 4096;  // PIPE_BUF: what a pipe that polls writable takes without blocking

constexpr std::string_view kLevelNames[] = {"debug", "info", "warn", "error"};
constexpr std::string_view kLevelColors[] = {"\x1b[90m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};

bool is_bare(std::string_view text) {
  for (const char c : text)
    if (c <= ' ' || c >= 0x7F || c == '"' || c == '=' || c == '\\') return false;
  return !text.empty();
}

// Nearly every value is plain ASCII and is copied in one piece.
void append_escaped(std::string& out, std::string_view text) {
  const bool is_plain = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c - 0x20) >= 0x5F || c == '"' || c == '\\';
  });
  if (is_plain)
    out += text;
  else
    base::append_json_escaped(out, text);
}

// With microseconds always, so that lines sort as text. The part down to the second is kept: it changes
// rarely.
void append_time(std::string& out) {
  using std::chrono::seconds;
  thread_local base::Timestamp kept_second{};
  thread_local std::string kept;
  const base::Timestamp now = base::wall_now();
  const base::Timestamp second = std::chrono::floor<seconds>(now);
  if (second != kept_second || kept.empty()) {
    kept_second = second;
    kept = base::to_rfc3339(second);
    kept.back() = '.';
  }
  out += kept;
  char digits[] = "000000Z";
  auto micros = (now - second).count();
  for (int i = 5; i >= 0; --i, micros /= 10) digits[i] = static_cast<char>('0' + micros % 10);
  out += digits;
}

bool is_regular_file(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

std::string_view level_name(Level level) {
  return kLevelNames[static_cast<size_t>(level)];
}

}  // namespace

std::optional<Level> parse_level(std::string_view name) {
  for (size_t i = 0; i < std::size(kLevelNames); ++i)
    if (kLevelNames[i] == name) return static_cast<Level>(i);
  return std::nullopt;
}

std::optional<LogFormat> parse_log_format(std::string_view name) {
  if (name == "json") return LogFormat::json;
  if (name == "text") return LogFormat::text;
  return std::nullopt;
}

LogFormat default_log_format(int fd) {
  return ::isatty(fd) ? LogFormat::text : LogFormat::json;
}

struct Log::State {
  explicit State(Options given)
      : options(given), is_file(is_regular_file(given.fd)), is_terminal(::isatty(given.fd) == 1) {}

  void append(std::string_view line);
  void run();
  void write_out(std::string_view text);
  bool wait_until_written(std::unique_lock<std::mutex>& lock);
  void report_dropped();

  static inline std::atomic<State*> current{nullptr};

  const Options options;
  const bool is_file;
  const bool is_terminal;
  std::mutex mutex;
  std::condition_variable wake;  // the writer: there are lines
  std::condition_variable idle;  // flush(): everything is out
  std::string buffer;            // guarded by mutex
  size_t dropped = 0;            // guarded by mutex
  bool is_writing = false;       // guarded by mutex
  bool is_stopping = false;      // guarded by mutex
  std::atomic<bool> is_given_up{false};
  std::thread writer;
};

void Log::State::append(std::string_view line) {
  bool was_empty;
  {
    const std::lock_guard lock(mutex);
    if (buffer.size() + line.size() > options.buffer_bytes_max) {
      ++dropped;
      return;
    }
    was_empty = buffer.empty();
    buffer += line;
  }
  if (was_empty) wake.notify_one();
}

void Log::State::report_dropped() {
  if (dropped == 0) return;
  const std::string time = base::to_rfc3339(base::wall_now());
  if (options.format == LogFormat::json)
    fmt::format_to(std::back_inserter(buffer),
                   R"({{"time":"{}","level":"warn","event":"log_lines_dropped","count":{}}})"
                   "\n",
                   time, dropped);
  else
    fmt::format_to(std::back_inserter(buffer), "{} warn log_lines_dropped count={}\n", time, dropped);
  dropped = 0;
}

void Log::State::run() {
  std::string batch;
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [&] { return !buffer.empty() || is_stopping; });
    if (!is_stopping) wake.wait_for(lock, kGather, [&] { return is_stopping; });
    report_dropped();
    if (buffer.empty()) break;
    batch.clear();
    batch.swap(buffer);
    is_writing = true;
    lock.unlock();
    write_out(batch);
    lock.lock();
    is_writing = false;
    idle.notify_all();
  }
}

// Never blocks forever: a pipe or terminal is written only when poll() reports that it is writable.
void Log::State::write_out(std::string_view text) {
  while (!text.empty() && !is_given_up) {
    if (!is_file) {
      pollfd descriptor{options.fd, POLLOUT, 0};
      if (::poll(&descriptor, 1, 50) == 0) continue;
    }
    const ssize_t written =
        ::write(options.fd, text.data(), is_file ? text.size() : std::min(text.size(), kPieceBytes));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return;  // the reader is gone; a log that cannot be written stops nothing
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool Log::State::wait_until_written(std::unique_lock<std::mutex>& lock) {
  return idle.wait_for(lock, kPatience, [&] { return buffer.empty() && !is_writing; });
}

Log::Log(Options options) : state_(std::make_unique<State>(options)) {
  State* expected = nullptr;
  CHECK(State::current.compare_exchange_strong(expected, state_.get()));
  state_->writer = std::thread([state = state_.get()] { state->run(); });
}

Log::~Log() {
  State::current = nullptr;
  {
    std::unique_lock lock(state_->mutex);
    state_->is_stopping = true;
    state_->wake.notify_one();
    if (!state_->wait_until_written(lock)) state_->is_given_up = true;
  }
  state_->writer.join();
}

void Log::flush() {
  std::unique_lock lock(state_->mutex);
  state_->wait_until_written(lock);
}

LogLine::LogLine(Level level, std::string_view event)
    : sink_(Log::State::current.load(std::memory_order_acquire)) {
  if (sink_ && level < sink_->options.level) sink_ = nullptr;
  if (!sink_) return;
  text_.reserve(512);
  if (sink_->options.format == LogFormat::json) {
    text_ += R"({"time":")";
    append_time(text_);
    text_ += R"(","level":")";
    text_ += level_name(level);
    text_ += R"(","event":")";
    append_escaped(text_, event);
    text_ += '"';
  } else {
    const std::string_view color = sink_->is_terminal ? kLevelColors[static_cast<size_t>(level)] : "";
    const std::string_view plain = sink_->is_terminal ? "\x1b[0m" : "";
    append_time(text_);
    fmt::format_to(std::back_inserter(text_), " {}{:5}{} {}", color, level_name(level), plain, event);
  }
}

LogLine::~LogLine() {
  if (!sink_) return;
  if (sink_->options.format == LogFormat::json) text_ += '}';
  text_ += '\n';
  sink_->append(text_);
}

void LogLine::name(std::string_view field_name) {
  if (sink_->options.format == LogFormat::json) {
    text_ += ",\"";
    append_escaped(text_, field_name);
    text_ += "\":";
  } else {
    text_ += ' ';
    text_ += field_name;
    text_ += '=';
  }
}

LogLine& LogLine::field(std::string_view field_name, std::string_view value) {
  if (!sink_) return *this;
  name(field_name);
  if (sink_->options.format == LogFormat::text && is_bare(value)) {
    text_ += value;
  } else {
    text_ += '"';
    append_escaped(text_, value);
    text_ += '"';
  }
  return *this;
}

LogLine& LogLine::field(std::string_view field_name, std::nullptr_t) {
  if (!sink_) return *this;
  name(field_name);
  text_ += "null";
  return *this;
}

LogLine& LogLine::field(std::string_view field_name, double value) {
  if (!sink_) return *this;
  if (!std::isfinite(value)) return field(field_name, nullptr);
  name(field_name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

LogLine& LogLine::field_bool(std::string_view field_name, bool value) {
  if (!sink_) return *this;
  name(field_name);
  text_ += value ? "true" : "false";
  return *this;
}

LogLine& LogLine::field_int(std::string_view field_name, int64_t value) {
  if (!sink_) return *this;
  name(field_name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

LogLine& LogLine::field_uint(std::string_view field_name, uint64_t value) {
  if (!sink_) return *this;
  name(field_name);
  fmt::format_to(std::back_inserter(text_), "{}", value);
  return *this;
}

}  // namespace postrider::telemetry
