// Statements in the database where an outbox is.
#pragma once

#include <string>
#include <vector>

#include "postrider/api/wire/routes.hpp"
#include "postrider/base/result.hpp"
#include "postrider/http/server/problem.hpp"

namespace postrider::api {

// Runs a batch there: in postrider's own database, or over a connection of its own. A problem: there is no
// such outbox, or its database is not reachable or not prepared. `note` is for the audit log and written
// before, so that it shows the request even if the other database is lost in the middle. Throws
// pg::Error for postrider's own database.
using ThereResult = base::Result<std::vector<pg::Rows>, http::Problem>;
Task<ThereResult> run_there(Call& call, std::string id, pg::Batch batch, pg::Batch note = pg::Batch());
// The outbox that the configuration file names so, if any.
const config::OutboxConfig* find_configured(const Call& call, const std::string& id);
http::Problem unknown_outbox();
// For results that cannot be read because the tables of the outbox are damaged.
http::Problem unusable_outbox(const pg::Error& error);

}  // namespace postrider::api
