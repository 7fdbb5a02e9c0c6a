// Private to schema/: a schema document made into a program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/schema/program.hpp"
#include "postrider/schema/resources.hpp"
#include "postrider/schema/schema.hpp"

namespace postrider::schema {

class Compiler {
 public:
  // The document is in the program and stays there.
  Compiler(Program& program, const Resources& resources) : program_(program), resources_(resources) {}

  std::optional<Violation> run();

 private:
  // The schema being compiled: which node it becomes, and where it is written.
  struct Site {
    const boost::json::object& schema;
    NodeIndex node;
    uint32_t resource;
    std::string pointer;
  };
  struct Waiting {
    const boost::json::value* value;
    NodeIndex node;
    uint32_t resource;
    std::string pointer;
  };

  NodeIndex node_for(const boost::json::value& schema, uint32_t resource, std::string pointer);
  void compile(const Waiting& waiting);
  void compile_object(const Site& site);
  void references(const Site& site);
  void types(const Site& site);
  void numbers(const Site& site);
  void strings(const Site& site);
  void objects(const Site& site);
  void properties(const Site& site, ObjectRules& rules);
  void dependencies(const Site& site, ObjectRules& rules);
  void arrays(const Site& site);
  void branches(const Site& site);
  void dynamic_anchors();

  const boost::json::value* keyword(const Site& site, std::string_view name) const;
  std::optional<NodeIndex> schema_at(const Site& site, std::string_view name);
  std::vector<NodeIndex> schemas_at(const Site& site, std::string_view name);
  std::optional<uint64_t> count_at(const Site& site, std::string_view name);
  const boost::json::value* number_at(const Site& site, std::string_view name);
  std::vector<std::string> names(const Site& site, std::string_view name, const boost::json::value& value);
  std::optional<Pattern> pattern(const Site& site, std::string_view name, std::string_view text);
  Subschema& node(const Site& site) { return program_.nodes[site.node]; }
  bool is_07() const { return resources_.draft() == Draft::draft_07; }
  void reject(const Site& site, std::string_view name, std::string detail);

  Program& program_;
  const Resources& resources_;
  std::vector<Waiting> waiting_;
  std::unordered_map<const boost::json::value*, NodeIndex> nodes_;
  size_t patterns_ = 0;
  std::optional<Violation> problem_;
};

}  // namespace postrider::schema
