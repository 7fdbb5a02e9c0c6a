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
  add(table, "Events and endpoints",
      {event_commands(), endpoint_commands(), tenant_commands(), delivery_commands(), dead_letter_commands(),
       replay_commands(), event_type_commands(), import_command(), apply_command(), export_command(),
       publish_command()});
  add(table, "Monitoring",
      {search_command(), tail_command(), stats_command(), audit_command(), node_commands()});
  add(table, "Local development", {listen_command(), trigger_command(), verify_command()});
  add(table, "Inbound webhooks", {source_commands(), inbox_commands()});
  add(table, "Administration", {key_commands(), token_commands(), brake_commands(), outbox_commands()});
  add(table, "Server",
      {serve_command(), migrate_command(), config_command(), doctor_command(), database_url_command(),
       relay_command()});
  add(table, "CLI settings",
      {profile_commands(), whoami_command(), completion_command(), complete_command(), version_command()});
  return table;
}

}  // namespace

const std::vector<Command>& command_table() {
  static const std::vector<Command> table = make_table();
  return table;
}

}  // namespace postrider::cli
