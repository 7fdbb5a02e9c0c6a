// `postrider key rotate-master`: works on the database itself, with the master keys of this machine's
// settings.
#include <cstdio>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/cli/machine_user.hpp"
#include "postrider/cli/progress.hpp"
#include "postrider/pg/private_cluster.hpp"
#include "postrider/registry/rotate_master.hpp"
#include "postrider/registry/startup.hpp"
#include "postrider/runtime/run_blocking.hpp"
#include "postrider/server/database.hpp"

namespace postrider::cli {

namespace {

constexpr auto kDatabaseWait = std::chrono::seconds(10);

runtime::Task<registry::MasterRotation> rotate(pg::Link& link, const crypto::MasterKeys& keys) {
  link.start();
  std::exception_ptr error;
  registry::MasterRotation rotation;
  Progress bar("re-encrypted");
  const std::function<void(const registry::MasterRotation&)> progress =
      [&bar](const registry::MasterRotation& so_far) { bar.update(static_cast<uint64_t>(so_far.resealed)); };
  try {
    const auto deadline = base::BootClock::now() + kDatabaseWait;
    co_await link.wait_up(deadline);
    co_await registry::verify_master_key(link, keys);
    const registry::Caller caller = machine_user();
    rotation = co_await registry::rotate_master_key(link, keys, caller, progress);
  } catch (...) {
    error = std::current_exception();
  }
  bar.finish();
  co_await link.stop();
  if (error) std::rethrow_exception(error);
  co_return rotation;
}

int rotate_master(Invocation& in) {
  const config::Config config = in.settings().config;
  const bool is_private = config.database_url.empty();
  const crypto::MasterKeys keys = server::load_master_keys(config, is_private);
  runtime::Loop loop;
  pg::LinkOptions options;
  options.connect.url = is_private ? pg::PrivateCluster::url_of(config.data_dir) : config.database_url;
  options.connect.application_name = "postrider rotate-master";
  pg::Link link(loop, options);
  const registry::MasterRotation rotation = runtime::run_blocking(loop, rotate(link, keys));
  std::printf("Re-encrypted %lld secrets and header sets with the current master key.\n",
              static_cast<long long>(rotation.resealed));
  if (rotation.unreadable == 0) return done;
  std::fprintf(stderr,
               "postrider: %lld could not be decrypted with any of the configured master keys and were left "
               "unchanged.\n",
               static_cast<long long>(rotation.unreadable));
  return failed;
}

}  // namespace

Command rotate_master_command() {
  return command("rotate-master",
                 "Re-encrypt all secrets with the first configured master key; nodes keep running", {},
                 rotate_master, Needs::settings)
      .example("postrider key rotate-master");
}

}  // namespace postrider::cli
