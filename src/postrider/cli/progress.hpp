// A progress bar for long work: on a terminal only, so that logs and pipes stay clean.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace postrider::cli {

class Progress {
 public:
  // `total` 0: not known yet. Draws on standard error.
  explicit Progress(std::string label, uint64_t total = 0);
  ~Progress();  // ends the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_total(uint64_t total) { total_ = total; }
  // Replaces the label before the bar; the numbers after it are then left out.
  void say(std::string text) {
    label_ = std::move(text);
    is_said_ = true;
  }
  void update(uint64_t done);  // redraws at most ten times a second
  void finish();

 private:
  void draw();

  std::string label_;
  uint64_t total_, done_ = 0;
  int64_t drawn_at_ms_ = 0;
  bool is_shown_, is_finished_ = false, is_said_ = false;
};

std::string progress_line(const std::string& label, uint64_t done, uint64_t total, int width,
                          bool has_numbers = true);

}  // namespace postrider::cli
