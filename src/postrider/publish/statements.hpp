// The parameters and the rows of publish.sql, versions.sql and recover.sql. Internal to publish/.
#pragma once

#include "postrider/pg/batch.hpp"
#include "postrider/publish/commit.hpp"
#include "postrider/publish/fanout_plan.hpp"
#include "postrider/publish/publish.sql.hpp"
#include "postrider/publish/recover.sql.hpp"
#include "postrider/publish/versions.sql.hpp"

namespace postrider::publish {

// Events whose plan is not known. Reading adds a result for each event and its deliveries, and remembers the
// plans.
pg::Pending<sql::publish> add_publish(pg::Batch& batch, const PendingEvents& events,
                                      const CommitSettings& settings);
void read_published(const pg::RowsOf<sql::publish>& rows, const PendingEvents& events,
                    const CommitSettings& settings, FanoutPlanCache& plans, Commit& commit);

// The same for events in several versions, which have no plans.
pg::Pending<sql::publish_versions> add_publish_versions(pg::Batch& batch, const PendingEvents& events,
                                                        const CommitSettings& settings);
void read_versions_published(const pg::RowsOf<sql::publish_versions>& rows, const PendingEvents& events,
                             const CommitSettings& settings, Commit& commit);

pg::Pending<sql::recall> add_recall(pg::Batch& batch, const PendingEvents& events);

}  // namespace postrider::publish
