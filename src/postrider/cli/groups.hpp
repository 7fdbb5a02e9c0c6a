// One function per file: the commands of a group.
#pragma once

#include <vector>

#include "postrider/cli/command.hpp"

namespace postrider::cli {

Command serve_command();
Command migrate_command();
Command config_command();
Command database_url_command();
Command version_command();
Command completion_command();
Command profile_commands();
Command tenant_commands();
Command endpoint_commands();
Command event_commands();
Command publish_command();  // hidden: the same as `event publish`
Command whoami_command();
Command complete_command();  // hidden: called by completion scripts
Command replay_commands();
Command doctor_command();
Command verify_command();
Command trigger_command();
Command listen_command();
Command event_type_commands();
Command import_command();
Command apply_command();
Command export_command();
Command rotate_master_command();
Command node_commands();
Command key_commands();
Command token_commands();
Command audit_command();
Command source_commands();
Command inbox_commands();
Command outbox_commands();
Command capture_command();  // of the group outbox
Command outbox_discard_command();
Command refanout_command();
Command relay_command();
Command delivery_commands();
Command dead_letter_commands();
Command stats_command();
Command search_command();
Command brake_commands();
Command tail_command();

// All of them, in the order of the overview.
const std::vector<Command>& command_table();

}  // namespace postrider::cli
