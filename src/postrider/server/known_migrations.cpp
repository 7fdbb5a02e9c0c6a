#include "postrider/server/known_migrations.hpp"

#include "postrider/sql/migrations.hpp"

#ifdef POSTRIDER_FAIL_POINTS
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "postrider/pg/error.hpp"
#endif

namespace postrider::server {

#ifdef POSTRIDER_FAIL_POINTS

namespace {

std::vector<pg::Migration> with_test_migration() {
  std::vector<pg::Migration> all(sql::migrations.begin(), sql::migrations.end());
  const char* path = std::getenv("POSTRIDER_TEST_MIGRATION");
  if (path == nullptr) return all;
  std::ifstream file(path);
  if (!file) throw pg::Error(pg::Kind::other, std::string("cannot read ") + path);
  static const std::string text{std::istreambuf_iterator<char>(file), {}};
  all.push_back({static_cast<int>(all.size()) + 1, "test", text.c_str(), 1});
  return all;
}

}  // namespace

std::span<const pg::Migration> known_migrations() {
  static const std::vector<pg::Migration> all = with_test_migration();
  return all;
}

#else

std::span<const pg::Migration> known_migrations() {
  return sql::migrations;
}

#endif

}  // namespace postrider::server
