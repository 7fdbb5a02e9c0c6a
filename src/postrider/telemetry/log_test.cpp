#include "postrider/telemetry/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

namespace postrider::telemetry {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends_[0]);
    close_writing_end();
  }
  int writing_end() const { return ends_[1]; }
  void close_writing_end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string read_some() {
    char buffer[65536];
    const ssize_t n = ::read(ends_[0], buffer, sizeof buffer);
    return std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0);
  }
  std::string read_all() {
    close_writing_end();
    std::string all;
    for (std::string some; !(some = read_some()).empty();) all += some;
    return all;
  }

 private:
  int ends_[2];
};

// The output of a log with these options for `lines`, without the times.
template <class Lines>
std::string written(Log::Options options, Lines lines) {
  Pipe pipe;
  {
    options.fd = pipe.writing_end();
    const Log log(options);
    lines();
  }
  return pipe.read_all();
}

std::string behind_time(const std::string& line) {
  return line.starts_with("{") ? line.substr(line.find(',') + 1) : line.substr(line.find(' ') + 1);
}

TEST(LogLines, AreJsonWithTypedFields) {
  const std::string line = written({}, [] {
    log_info("webhook_delivery_attempt")
        .field("delivery_id", std::string("dlv_1"))
        .field("attempt", 3)
        .field("bytes", uint64_t{18446744073709551615u})
        .field("change", int64_t{-9223372036854775807})
        .field("latency_ms", 1.5)
        .field("delivered", true)
        .field("error", nullptr)
        .field("status_code", std::optional<int>(200))
        .field("next_attempt_at", std::optional<std::string>())
        .field("odd", std::numeric_limits<double>::quiet_NaN());
  });
  EXPECT_TRUE(line.starts_with(R"({"time":"20)")) << line;
  EXPECT_EQ(behind_time(line),
            R"("level":"info","event":"webhook_delivery_attempt","delivery_id":"dlv_1","attempt":3,)"
            R"("bytes":18446744073709551615,"change":-9223372036854775807,"latency_ms":1.5,"delivered":true,)"
            R"("error":null,"status_code":200,"next_attempt_at":null,"odd":null})"
            "\n");
}

TEST(LogLines, CannotBeForgedByTheirValues) {
  const std::string evil = "x\",\"level\":\"error\"}\n{\"event\":\"forged\"}\r\x1b[31m\x7f\xff";
  const std::string line = written({}, [&] { log_info("e").field("value", evil).field(evil, 1); });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(line.find(R"("value":"x\",\"level\":\"error\"}\n{\"event\":\"forged\"}\r\u001b[31m\u007f)"),
            std::string::npos)
      << line;
}

TEST(LogLines, CannotBeForgedInText) {
  const std::string line = written({.format = LogFormat::text}, [] {
    log_warn("e")
        .field("plain", "a-b")
        .field("spaced", "a b=c")
        .field("evil", "x\nINFO forged=1\x1b[31m")
        .field("", "");
  });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_NE(line.find(R"(e plain=a-b spaced="a b=c" evil="x\nINFO forged=1\u001b[31m" ="")"),
            std::string::npos)
      << line;
}

TEST(LogLines, BelowTheLevelAreNotWritten) {
  const std::string text = written({.level = Level::warn}, [] {
    log_debug("a");
    log_info("b");
    log_warn("c");
    log_error("d");
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(LogLines, WithoutALogGoNowhere) {
  log_error("nobody_listens").field("a", 1);
}

TEST(LogLines, OfManyThreadsStayWhole) {
  const std::string text = written({.buffer_bytes_max = 64 << 20}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < 100; ++i) log_info("line").field("thread", t).field("i", i);
      });
    for (auto& thread : threads) thread.join();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 400);
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_EQ(text.substr(at, 9), R"({"time":")") << at;
}

TEST(Log, DropsAndCountsWhenNobodyReads) {
  Pipe pipe;
  ASSERT_GT(::fcntl(pipe.writing_end(), F_SETPIPE_SZ, 4096), 0);
  const Log log({.fd = pipe.writing_end(), .buffer_bytes_max = 10'000});
  for (int i = 0; i < 10'000; ++i) log_info("line").field("i", i);  // must not wait for the reader
  std::string text;
  while (text.find("log_lines_dropped") == std::string::npos) text += pipe.read_some();
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 10'000);
}

TEST(Log, EndsAlthoughNobodyReads) {
  Pipe pipe;
  ASSERT_GT(::fcntl(pipe.writing_end(), F_SETPIPE_SZ, 4096), 0);
  Log log({.fd = pipe.writing_end()});
  for (int i = 0; i < 1000; ++i) log_info("line").field("i", i);
}

TEST(Log, FlushWaitsForTheLines) {
  Pipe pipe;
  Log log({.fd = pipe.writing_end()});
  log_info("first");
  log.flush();
  EXPECT_NE(pipe.read_some(), "");
}

TEST(Log, NamesAreParsed) {
  EXPECT_EQ(parse_level("warn"), Level::warn);
  EXPECT_EQ(parse_level("loud"), std::nullopt);
  EXPECT_EQ(parse_log_format("text"), LogFormat::text);
  EXPECT_EQ(parse_log_format("xml"), std::nullopt);
}

}  // namespace
}  // namespace postrider::telemetry
