// The whole command line, in the order of the overview.
#include <utility>

#include "postrider/cli/groups.hpp"

namespace postrider::cli {

namespace {

void add(std::vector<Command>& table, const char* section, std::vector<Command> commands) {
  for (Command& command : commands) {
    command.section = section;
    table.push_back(std::move(command));
  }
}

std::vector<Command> make_table() {
  std::vector<Command> table;
  add(table, "Run it",
      {serve_command(), migrate_command(), config_command(), database_url_command(), relay_command()});
  add(table, "Events and endpoints",
      {event_commands(), event_type_commands(), tenant_commands(), endpoint_commands(), import_command(),
       delivery_commands(), dead_letter_commands(), search_command(), tail_command()});
  add(table, "Inbound webhooks", {source_commands(), inbox_commands()});
  add(table, "Keys and audit", {key_commands(), audit_command()});
  add(table, "Operate",
      {replay_commands(), stats_command(), brake_commands(), node_commands(), outbox_commands(),
       doctor_command()});
  add(table, "Write receivers", {listen_command(), trigger_command(), verify_command()});
  add(table, "This command line", {profile_commands(), completion_command(), version_command()});
  return table;
}

}  // namespace

const std::vector<Command>& command_table() {
  static const std::vector<Command> table = make_table();
  return table;
}

}  // namespace postrider::cli
