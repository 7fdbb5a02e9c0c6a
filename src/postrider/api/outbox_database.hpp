// Statements in the database where an outbox is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/api/routes.hpp"

namespace postrider::api {

// Runs a batch there: in postrider's own database, or over a connection of its own. Nothing: there is no such
// outbox. `note` is for the audit log and written before, so that it tells what was asked for even if the
// other database is lost in the middle. Throws pg::Error.
Task<std::optional<std::vector<pg::Rows>>> run_there(Call& call, std::string id, pg::Batch batch,
                                                     pg::Batch note = pg::Batch());
// The outbox that the configuration file names so, if any.
const config::OutboxConfig* find_configured(const Call& call, const std::string& id);
http::Problem unknown_outbox();

}  // namespace postrider::api
