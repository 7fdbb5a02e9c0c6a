// A real Postgres for tests: one throwaway server per test process, on a unix socket, gone at exit.
#pragma once

#include <sys/types.h>

#include <string>

namespace postrider::support {

class Cluster {
 public:
  // Starts the server on first use (about a second), which must be in the main thread.
  // POSTRIDER_TEST_CLUSTER, a socket directory, names a running one to use instead; its superuser must be
  // `postgres`, without a password.
  static Cluster& get();

  // Before the first get(): logical decoding is possible, which costs every test a little.
  static bool want_logical();

  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  // As `postrider`, a role without privileges that owns the test databases, or as the superuser.
  std::string url(const std::string& database) const;
  std::string superuser_url(const std::string& database) const;

  bool is_own() const { return own_; }  // else stop() and start() are not possible
  void stop();                          // fast shutdown; returns when it is down
  void start();                         // returns when it accepts connections
  // The postmaster, for signals.
  pid_t pid() const { return postmaster_; }

 private:
  Cluster();
  void make();

  bool own_ = true;
  std::string directory_;  // of the socket; the data is in "data" below it
  pid_t postmaster_ = 0;
};

}  // namespace postrider::support
