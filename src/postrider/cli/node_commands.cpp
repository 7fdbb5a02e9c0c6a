// `postrider node`
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

int list(Invocation& in) {
  json::value answer = in.server().get(Target("v1", "nodes"));
  if (!in.as_json())
    for (json::value& node : answer.at("data").as_array())
      node.as_object()["bucket_count"] = node.at("buckets").as_array().size();
  in.out().list(answer, {{"ID", "/id"},
                         {"NAME", "/name"},
                         {"VERSION", "/version"},
                         {"ALIVE", "/alive"},
                         {"DELIVERS", "/delivers"},
                         {"BUCKETS", "/bucket_count"},
                         {"HEARTBEAT", "/heartbeat_at"}});
  const size_t free_buckets = answer.at("free_buckets").as_array().size();
  if (free_buckets > 0)
    in.out().note(std::to_string(free_buckets) + " buckets are served by nobody at the moment.");
  return done;
}

}  // namespace

Command node_commands() {
  return group("node", "The running nodes", {command("list", "Nodes and the buckets they serve", {}, list)});
}

}  // namespace postrider::cli
