// `postrider node`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

int list(Invocation& in) {
  json::value response = in.server().get(Target("v1", "nodes"));
  if (in.out().is_for_people())
    for (json::value& node : response.at("data").as_array())
      node.as_object()["bucket_count"] = node.at("buckets").as_array().size();
  in.out().list(response, {{"ID", "/id", Style::id},
                           {"NAME", "/name"},
                           {"VERSION", "/version", Style::yes_no},
                           {"ALIVE", "/alive"},
                           {"DELIVERS", "/delivers"},
                           {"BUCKETS", "/bucket_count", Style::yes_no},
                           {"HEARTBEAT", "/heartbeat_at", Style::age},
                           {"STARTED", "/started_at", Style::age, Column::Shown::if_room}});
  const size_t free_buckets = response.at("free_buckets").as_array().size();
  if (free_buckets > 0) in.out().note(std::to_string(free_buckets) + " buckets have no owner at the moment.");
  return done;
}

}  // namespace

Command node_commands() {
  return group("node", "Inspect the running nodes",
               {command("list", "List nodes and the number of buckets they own", {watch_flag()}, list)
                    .example("postrider node list")});
}

}  // namespace postrider::cli
