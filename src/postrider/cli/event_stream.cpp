#include "postrider/cli/event_stream.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <thread>
#include <utility>

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

constexpr size_t kSeenMax = 20'000;
constexpr auto kPauseAfterFailure = 1s;
constexpr auto kSilenceMax = 40s;  // the server sends something every 15 s
constexpr auto kLongest = 24h;

void say(const std::string& text) {
  std::fprintf(stderr, "%s\n", visible(text).c_str());
  std::fflush(stderr);
}

std::string counted(int64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

StreamMessage read_message(std::string_view text) {
  StreamMessage message;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.starts_with("event: ")) message.kind = line.substr(7);
    if (line.starts_with("id: ")) message.id = line.substr(4);
    if (line.starts_with("data: ")) message.data += line.substr(6);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return message;
}

}  // namespace

void MessageReader::feed(std::string_view data, const std::function<void(const StreamMessage&)>& take) {
  buffer_ += data;
  size_t begin = 0;
  for (size_t end = buffer_.find("\n\n"); end != std::string::npos; end = buffer_.find("\n\n", begin)) {
    const StreamMessage message = read_message(std::string_view(buffer_).substr(begin, end - begin));
    begin = end + 2;
    if (!message.data.empty()) take(message);
  }
  buffer_.erase(0, begin);
}

bool Seen::add(const std::string& key) {
  if (!keys_.insert(key).second) return false;
  order_.push_back(key);
  if (order_.size() <= kSeenMax) return true;
  keys_.erase(order_.front());
  order_.pop_front();
  return true;
}

void EventStream::ready() {
  const std::string caught_up = counted(fresh_, "message") + " caught up" +
                                (repeats_ > 0 ? ", " + counted(repeats_, "repeat") + " left out" : "");
  if (was_connected_)
    say("connected again: " + caught_up);
  else
    say("connected to " + in_.server().url() + (fresh_ > 0 ? ": " + caught_up : ""));
  is_connected_ = true;
  was_connected_ = true;
  has_said_lost_ = false;
}

void EventStream::lost(const std::string& why) {
  is_connected_ = false;
  if (!std::exchange(has_said_lost_, true)) say("not connected: " + why + "; trying again");
}

void EventStream::handle(const StreamMessage& message,
                         const std::function<bool(const StreamMessage&)>& take) {
  if (message.kind == "ready") {
    if (!is_connected_) ready();
  } else if (message.kind == "gap") {
    boost::system::error_code error;
    const json::value gap = json::parse(message.data, error);
    const json::object* fields = error ? nullptr : gap.if_object();
    if (fields && fields->contains("detail")) say("gap: " + cell_text(fields->at("detail")));
  } else {
    take(message) ? ++fresh_ : ++repeats_;
  }
  // Only now: a message that was not handled is sent again.
  if (!message.id.empty()) options_.after = message.id;
}

void EventStream::connect(const std::function<bool(const StreamMessage&)>& take) {
  reader_.reset();
  fresh_ = repeats_ = 0;
  Target target = options_.target;
  RemoteCall call{"GET", target.with("after", options_.after)};
  call.timeout = kLongest;
  if (options_.until)
    call.timeout = std::max(1ms, std::chrono::duration_cast<std::chrono::milliseconds>(
                                     *options_.until - std::chrono::steady_clock::now()));
  call.silence_max = kSilenceMax;
  const auto on_message = [&](const StreamMessage& message) { handle(message, take); };
  in_.server().stream(call, [&](std::string_view data) { reader_.feed(data, on_message); });
}

void EventStream::follow(const std::function<bool(const StreamMessage&)>& take) {
  while (!is_over()) {
    try {
      connect(take);
      if (is_over()) return;
      lost("the stream was interrupted");
      continue;  // at once: the server ends each stream after an hour, and restarts are short
    } catch (const ServerUnreachable& error) {
      if (is_over()) return;
      lost(error.what());
    } catch (const ServerProblem& problem) {
      if (problem.status < 500 && problem.status != 429) throw;
      lost(problem.what());
    }
    std::this_thread::sleep_for(kPauseAfterFailure);
  }
}

}  // namespace postrider::cli
