// Shared by the tests of this folder.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "postrider/pg/link.hpp"
#include "postrider/registry/context.hpp"
#include "postrider/registry/endpoints.hpp"
#include "postrider/registry/tenants.hpp"
#include "support/database.hpp"
#include "support/run.hpp"

namespace postrider::registry {

// A migrated database, a link to it and what changes of the registry need.
struct RegistryTest : testing::Test {
  RegistryTest() : link(loop, link_options()) {
    ids.synchronise(5, base::wall_now(), base::BootClock::now());
    link.start();
    run(link.wait_up(base::BootClock::now() + std::chrono::seconds(30)));
  }
  ~RegistryTest() override { run(link.stop()); }

  pg::LinkOptions link_options() {
    pg::LinkOptions options;
    options.connect.url = database.url();
    return options;
  }

  template <class T>
  T run(runtime::Task<T> task) {
    return support::run(loop, std::move(task));
  }

  std::string sql(const std::string& text) { return database.sql(text); }

  void make_tenant(const std::string& id) {
    ASSERT_TRUE(run(create_tenant(link, context, caller, id, {})).ok());
  }

  static NewEndpoint new_endpoint(std::string tenant) {
    NewEndpoint wanted;
    wanted.tenant = std::move(tenant);
    wanted.draft.settings.url = "https://hooks.example.com/in";
    wanted.draft.patterns = std::vector<std::string>{"invoice.*"};
    return wanted;
  }
  CreatedEndpoint make_endpoint(NewEndpoint wanted) {
    auto created = run(create_endpoint(link, context, caller, std::move(wanted)));
    EXPECT_TRUE(created.ok());
    return std::move(*created);
  }
  CreatedEndpoint make_endpoint(std::string tenant) { return make_endpoint(new_endpoint(std::move(tenant))); }

  std::string counts(const std::string& tenant) {
    return sql("select endpoint_count, strict_count from postrider.tenant where id = '" + tenant + "'");
  }

  support::Database database;
  runtime::Loop loop;
  pg::Link link;
  crypto::MasterKeys keys = *crypto::MasterKeys::parse(crypto::MasterKeys::generate());
  model::IdSource ids;
  Context context{keys, ids, support::buckets};
  Caller caller{.actor = model::Actor::operator_};
};

}  // namespace postrider::registry
