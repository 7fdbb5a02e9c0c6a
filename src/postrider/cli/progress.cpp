#include "postrider/cli/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "postrider/base/time.hpp"

namespace postrider::cli {

namespace {

constexpr int64_t kRedrawMs = 100;
constexpr int kBarMax = 30;

int64_t now_ms() {
  const auto since = base::BootClock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, int width,
                          bool has_numbers) {
  std::string numbers = total > 0 ? fmt::format("{}/{}", done, total) : fmt::format("{}", done);
  if (!has_numbers) numbers.clear();
  if (total == 0) return fmt::format("{}  {}", label, numbers);
  const uint64_t reached = std::min(done, total);
  const int bar = std::clamp(width - static_cast<int>(label.size() + numbers.size()) - 12, 0, kBarMax);
  const int filled = static_cast<int>(static_cast<double>(reached) / static_cast<double>(total) * bar);
  std::string drawn;
  for (int i = 0; i < bar; ++i) drawn += i < filled ? "█" : "░";
  return fmt::format("{}  {} {:3}%  {}", label, drawn, reached * 100 / total, numbers);
}

Progress::Progress(std::string label, uint64_t total)
    : label_(std::move(label)), total_(total), is_shown_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  finish();
}

void Progress::update(uint64_t done) {
  done_ = done;
  if (!is_shown_ || now_ms() - drawn_at_ms_ < kRedrawMs) return;
  draw();
}

void Progress::finish() {
  if (!is_shown_ || is_finished_) return;
  is_finished_ = true;
  draw();
  std::fputc('\n', stderr);
}

void Progress::draw() {
  drawn_at_ms_ = now_ms();
  const std::string line = progress_line(label_, done_, total_, terminal_width(), !is_said_);
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

}  // namespace postrider::cli
