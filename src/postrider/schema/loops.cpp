#include "postrider/schema/loops.hpp"

namespace postrider::schema {

namespace {

// The subschemas that are applied to the same value as this one.
std::vector<NodeIndex> in_place(const Subschema& node) {
  std::vector<NodeIndex> all;
  const auto add = [&all](const std::optional<NodeIndex>& one) {
    if (one) all.push_back(*one);
  };
  add(node.ref);
  if (node.dynamic_anchor.empty()) add(node.dynamic_ref);
  if (node.branches) {
    for (const auto* list : {&node.branches->all_of, &node.branches->any_of, &node.branches->one_of})
      all.insert(all.end(), list->begin(), list->end());
    add(node.branches->not_node);
    add(node.branches->if_node);
    add(node.branches->then_node);
    add(node.branches->else_node);
  }
  if (node.object)
    for (const auto& dependent : node.object->dependent_schemas) all.push_back(dependent.node);
  return all;
}

}  // namespace

bool has_endless_loop(const Program& program) {
  enum class State : uint8_t { fresh, open, done };
  std::vector<State> states(program.nodes.size(), State::fresh);
  struct Visit {
    NodeIndex node;
    std::vector<NodeIndex> rest;
  };
  std::vector<Visit> path;
  for (NodeIndex start = 0; start < states.size(); ++start) {
    if (states[start] != State::fresh) continue;
    states[start] = State::open;
    path.push_back({start, in_place(program.nodes[start])});
    while (!path.empty()) {
      Visit& top = path.back();
      if (top.rest.empty()) {
        states[top.node] = State::done;
        path.pop_back();
        continue;
      }
      const NodeIndex next = top.rest.back();
      top.rest.pop_back();
      if (states[next] == State::open) return true;
      if (states[next] == State::done) continue;
      states[next] = State::open;
      path.push_back({next, in_place(program.nodes[next])});
    }
  }
  return false;
}

}  // namespace postrider::schema
