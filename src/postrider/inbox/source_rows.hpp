// Private to inbox/: sources between rows and structs.
#pragma once

#include <vector>

#include "postrider/inbox/sources.hpp"
#include "postrider/pg/params.hpp"
#include "postrider/pg/rows.hpp"

namespace postrider::inbox {

// Adds the settings in the order in which insert_source and update_source take them.
void add_settings(pg::Params& params, Provider provider, const SourceSettings& settings);

std::vector<Source> read_sources(const pg::Rows& rows);  // of load_sources

}  // namespace postrider::inbox
