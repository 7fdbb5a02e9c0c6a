#include "postrider/delivery/brake_reader.hpp"

#include <utility>

#include "postrider/pg/error.hpp"
#include "postrider/registry/brakes.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 250ms;  // after a failure

}  // namespace

BrakeReader::BrakeReader(runtime::Loop& loop, pg::Link& link, OnRead on_read)
    : link_(link), on_read_(std::move(on_read)), pause_(loop) {}

runtime::Task<void> BrakeReader::begin() {
  read_soon();
  co_await tasks_.join();
}

void BrakeReader::read_soon() {
  is_stale_ = true;
  if (tasks_.running() == 0) tasks_.spawn(run());
}

runtime::Task<void> BrakeReader::run() {
  while (is_stale_ && !is_stopping_) {
    is_stale_ = false;
    try {
      registry::BrakeHistory read = co_await registry::load_brake_history(link_);
      const registry::BrakeSettings& settings = read.state.settings;
      const Brakes brakes{settings.is_paused, settings.retry_rate_per_second, settings.drain_rate_per_second,
                          std::move(read.pauses)};
      on_read_(brakes);
      continue;
    } catch (const pg::Error& error) {
      telemetry::log_warn("brakes_not_loaded").field("error", error.what());
      is_stale_ = true;
    }
    co_await pause_.wait_for(kPause);
  }
}

runtime::Task<void> BrakeReader::stop() {
  is_stopping_ = true;
  pause_.notify();
  co_await tasks_.join();
}

}  // namespace postrider::delivery
