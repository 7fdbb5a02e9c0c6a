// Reads a logical replication slot: a connection in replication mode, where the server sends what was
// committed, in that order, and learns which part it need not send again. On one loop, for one coroutine.
//
// Everything throws Error(unavailable) when the connection is lost or closed, and Error with the server's
// SQLSTATE when it rejects a command. After an error the object can only be destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/pg/connect_options.hpp"
#include "postrider/pg/error.hpp"
#include "postrider/runtime/loop.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::pg {

// A place in the write-ahead log.
enum class Lsn : uint64_t {};

class ReplicationStream {
 public:
  // Of the options: URL, names and the time-outs of the connection.
  ReplicationStream(runtime::Loop& loop, ConnectOptions options);
  ~ReplicationStream();
  ReplicationStream(const ReplicationStream&) = delete;
  ReplicationStream& operator=(const ReplicationStream&) = delete;

  runtime::Task<void> connect();
  int server_version() const;
  // A command of replication mode, before start(). Has no timeout of its own.
  runtime::Task<void> command(std::string text);
  // START_REPLICATION …: from here on there are frames.
  runtime::Task<void> start(std::string command);

  // The next frame that was received; nothing: call wait(). The bytes live until the next call.
  struct Frame {
    bool is_keepalive = false;  // no bytes: everything before `end` that concerns this slot was sent
    Lsn end{};                  // of the log when it was sent
    std::string_view bytes;     // of the output plugin
  };
  std::optional<Frame> next();
  // Until there may be a frame, wake() is called, or the deadline.
  runtime::Task<void> wait(runtime::SteadyTime deadline);
  void wake();

  // Everything before `done` is safe and need not be sent again. On request, the server responds with a
  // keepalive.
  void confirm(Lsn done, bool is_reply_wanted = false);
  void close();  // a waiting call throws Error(unavailable)

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with a pending wait for the socket
};

}  // namespace postrider::pg
