// Log lines: an event name and typed fields, one wide line per fact. JSON for programs, text for a terminal.
//
//   telemetry::log_info("webhook_delivery_attempt").field("delivery_id", id).field("attempt", 3);
//
// The line is written when the expression ends. Values are escaped here, so no value can forge a field or a
// line.
//
// A process has one log, like it has one stderr, so the sink is process-wide: main makes a Log and everything
// writes to it; a Logger handed through every constructor would be an argument that carries no decision.
// Without a Log (tests) lines are dropped.
//
// Threads: any. A line is formatted by its caller and appended to a bounded buffer; a thread of the Log
// writes the buffer within milliseconds. A caller never waits for the reader of the log: when the buffer is
// full, lines are dropped and counted, and the count is logged as soon as there is room
// ("log_lines_dropped").
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::telemetry {

enum class Level { debug, info, warn, error };
enum class LogFormat { json, text };

std::optional<Level> parse_level(std::string_view name);
std::optional<LogFormat> parse_log_format(std::string_view name);
// json, or text when the descriptor is a terminal.
LogFormat default_log_format(int fd);

class Log {
 public:
  struct Options {
    int fd = 2;
    LogFormat format = LogFormat::json;
    Level level = Level::info;
    size_t buffer_bytes_max = 1 << 20;
  };
  // One at a time; it is the process's sink until it is destroyed, which waits up to a second for the last
  // lines.
  explicit Log(Options options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void flush();  // until everything written so far is out, at most a second

 private:
  friend class LogLine;
  struct State;
  std::unique_ptr<State> state_;
};

class LogLine {
 public:
  LogLine(Level level, std::string_view event);
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  LogLine& field(std::string_view name, std::string_view value);
  LogLine& field(std::string_view name, const char* value) { return field(name, std::string_view(value)); }
  LogLine& field(std::string_view name, const std::string& value) {
    return field(name, std::string_view(value));
  }
  LogLine& field(std::string_view name, std::nullptr_t);
  LogLine& field(std::string_view name, double value);  // not a number and infinities become null
  LogLine& field(std::string_view name, std::same_as<bool> auto value) { return field_bool(name, value); }
  LogLine& field(std::string_view name, std::integral auto value)
    requires(!std::same_as<decltype(value), bool>)
  {
    if constexpr (std::is_signed_v<decltype(value)>)
      return field_int(name, static_cast<int64_t>(value));
    else
      return field_uint(name, static_cast<uint64_t>(value));
  }
  template <class T>
  LogLine& field(std::string_view name, const std::optional<T>& value) {
    return value ? field(name, *value) : field(name, nullptr);
  }

 private:
  LogLine& field_bool(std::string_view name, bool value);
  LogLine& field_int(std::string_view name, int64_t value);
  LogLine& field_uint(std::string_view name, uint64_t value);
  void name(std::string_view field_name);

  Log::State* sink_;  // null when the line is not wanted; then nothing is formatted
  std::string text_;
};

inline LogLine log_debug(std::string_view event) {
  return LogLine(Level::debug, event);
}
inline LogLine log_info(std::string_view event) {
  return LogLine(Level::info, event);
}
inline LogLine log_warn(std::string_view event) {
  return LogLine(Level::warn, event);
}
inline LogLine log_error(std::string_view event) {
  return LogLine(Level::error, event);
}

}  // namespace postrider::telemetry
