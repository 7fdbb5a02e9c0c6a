// Private to schema/: where in a schema document a reference leads. Only inside it: nothing is fetched.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "postrider/base/result.hpp"

namespace postrider::schema {

enum class Draft { draft_07, draft_2020_12 };

// The draft that `$schema` names; 2020-12 where there is none; nothing for one that is not supported.
std::optional<Draft> draft_of(const boost::json::value& document);

inline constexpr size_t kDepthMax = 64;       // of the schema's JSON
inline constexpr size_t kPlacesMax = 10'000;  // subschemas

// The way in which a keyword contains schemas.
enum class Holds { nothing, one, list, map, one_or_list, map_or_names };
Holds holds(Draft draft, std::string_view keyword);

// A schema somewhere in the document, and the resource (the part with an $id of its own) that it belongs to.
struct Place {
  const boost::json::value* value;
  uint32_t resource;
};

class Resources {
 public:
  // Walks over the whole document; the failure is a sentence.
  static base::Result<Resources, std::string> find_all(const boost::json::value& document, Draft draft);

  base::Result<Place, std::string> resolve(std::string_view reference, uint32_t from) const;
  Draft draft() const { return draft_; }
  size_t count() const { return resources_.size(); }
  uint32_t resource_of(const boost::json::value& schema, uint32_t parent) const;
  const std::map<std::string, const boost::json::value*, std::less<>>& dynamic_anchors(uint32_t of) const {
    return resources_[of].dynamic_anchors;
  }

 private:
  struct Resource {
    std::string uri;
    const boost::json::value* root = nullptr;
    std::map<std::string, const boost::json::value*, std::less<>> anchors, dynamic_anchors;
  };

  explicit Resources(Draft draft) : draft_(draft) {}
  std::optional<std::string> visit(const boost::json::value& schema, uint32_t resource, size_t depth);
  std::optional<std::string> visit_children(const boost::json::object& schema, uint32_t resource,
                                            size_t depth);
  std::optional<std::string> identify(const boost::json::value& schema, uint32_t& resource);
  base::Result<Place, std::string> follow(std::string_view pointer, uint32_t resource) const;

  Draft draft_;
  std::vector<Resource> resources_;
  std::unordered_map<const boost::json::value*, uint32_t> places_;
};

}  // namespace postrider::schema
