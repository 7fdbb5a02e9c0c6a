#include "postrider/server/logging.hpp"

#include <unistd.h>

namespace postrider::server {
namespace {

telemetry::Level level_of(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::debug:
      return telemetry::Level::debug;
    case config::LogLevel::info:
      return telemetry::Level::info;
    case config::LogLevel::warn:
      return telemetry::Level::warn;
    case config::LogLevel::error:
      return telemetry::Level::error;
  }
  return telemetry::Level::info;
}

telemetry::LogFormat format_of(config::LogFormat format) {
  switch (format) {
    case config::LogFormat::json:
      return telemetry::LogFormat::json;
    case config::LogFormat::text:
      return telemetry::LogFormat::text;
    case config::LogFormat::automatic:
      break;
  }
  return telemetry::default_log_format(STDERR_FILENO);
}

}  // namespace

telemetry::Log::Options log_options(const config::Config& config) {
  return {.fd = STDERR_FILENO, .format = format_of(config.log_format), .level = level_of(config.log_level)};
}

}  // namespace postrider::server
