// Shared by the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "postrider/pg/connection.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::pg {

// A database without a schema and a connection to it.
struct ConnectedTest : testing::Test {
  ConnectedTest() : connection(support::run(loop, Connection::open(loop, options()))) {}

  ConnectOptions options() {
    ConnectOptions chosen;
    chosen.url = database.url();
    chosen.connect_timeout = std::chrono::seconds(60);
    return chosen;
  }

  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  // The error that the task ends in, which it must.
  template <class T>
  Error error_of(runtime::Task<T> task) {
    try {
      run(std::move(task));
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return Error(Kind::other, "none");
  }

  void kill_backend(const Connection& of) {
    database.sql("select pg_terminate_backend(" + std::to_string(of.server().backend_pid) + ")");
  }

  support::Database database{support::Database::Schema::none};
  runtime::Loop loop;
  std::unique_ptr<Connection> connection;
};

}  // namespace postrider::pg
