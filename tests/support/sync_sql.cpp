#include "support/sync_sql.hpp"

#include <libpq-fe.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace postrider::support {

namespace {

constexpr auto wait_timeout = std::chrono::seconds(60);

void ignore_notice(void*, const PGresult*) {}

}  // namespace

void SyncSql::Finish::operator()(pg_conn* conn) const {
  PQfinish(conn);
}

SyncSql::SyncSql(std::string url) : url_(std::move(url)) {
  connect();
}

void SyncSql::connect() {
  conn_.reset(PQconnectdb(url_.c_str()));
  if (PQstatus(conn_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(conn_.get()));
  PQsetNoticeReceiver(conn_.get(), ignore_notice, nullptr);
  PQclear(PQexec(conn_.get(), "set search_path = postrider, public; set timezone = 'UTC'"));
}

std::string SyncSql::operator()(const std::string& sql) {
  if (PQstatus(conn_.get()) != CONNECTION_OK) connect();
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(conn_.get(), sql.c_str()), &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(std::string(PQerrorMessage(conn_.get())) + "in: " + sql);
  std::string text;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    if (row > 0) text += '\n';
    for (int column = 0; column < PQnfields(result.get()); ++column) {
      if (column > 0) text += '|';
      text += PQgetvalue(result.get(), row, column);
    }
  }
  return text;
}

void SyncSql::wait_for(const std::string& sql, const std::string& wanted) {
  const auto give_up = std::chrono::steady_clock::now() + wait_timeout;
  std::string found;
  while ((found = (*this)(sql)) != wanted) {
    if (std::chrono::steady_clock::now() > give_up)
      throw std::runtime_error("still \"" + found + "\", not \"" + wanted + "\": " + sql);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace postrider::support
