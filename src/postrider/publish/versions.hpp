// What goes into and comes out of publish_versions: events in several versions. Internal to publish/.
#pragma once

#include "postrider/pg/params.hpp"
#include "postrider/pg/rows.hpp"
#include "postrider/publish/commit.hpp"

namespace postrider::publish {

pg::Params publish_versions_params(const Drafts& drafts, const CommitSettings& settings);
// Appends an answer for each draft, and its deliveries.
void read_versions_published(const pg::Rows& rows, const Drafts& drafts, const CommitSettings& settings,
                             Commit& commit);

}  // namespace postrider::publish
