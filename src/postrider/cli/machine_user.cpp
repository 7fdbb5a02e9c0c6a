#include "postrider/cli/machine_user.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>

#include "postrider/base/host_name.hpp"

namespace postrider::cli {

namespace {

std::string user_name() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return std::to_string(getuid());
  return entry.pw_name;
}

}  // namespace

registry::Caller machine_user() {
  registry::Caller caller;
  caller.kind = registry::ActorKind::command;
  caller.actor = model::Actor::operator_;
  caller.id = user_name() + "@" + base::host_name();
  return caller;
}

}  // namespace postrider::cli
