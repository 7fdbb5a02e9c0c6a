// The event types as publishing needs them: in memory, with compiled schemas. One cache per loop.
//
// Nothing is validated, which costs nothing, while every type's validation is off and unknown types are
// allowed.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/pg/link.hpp"
#include "postrider/registry/control_log.hpp"
#include "postrider/registry/event_types.hpp"
#include "postrider/runtime/task.hpp"
#include "postrider/schema/schema.hpp"

namespace postrider::registry {

// The parts of an event that are validated.
struct EventFacts {
  std::string_view type;
  std::optional<std::string_view> version;
  std::string_view data;  // JSON
};

struct ValidationResult {
  enum class Kind {
    valid,
    warned,    // invalid, but published
    rejected,  // invalid
  };
  Kind kind = Kind::valid;
  std::vector<schema::Violation> violations;  // pointers into the event: /data/amount, /version, /type
};

// Immutable.
class Catalogue {
 public:
  // Schemas that `before` has compiled already are taken over.
  Catalogue(const std::vector<EventType>& types, const Catalogue* before);

  // False: for validate() every event is valid.
  bool validates(bool rejects_unknown) const { return rejects_unknown || has_validation_; }
  // Pure. An event that names a version is validated against its schema, any other against the latest.
  ValidationResult validate(const EventFacts& event, bool rejects_unknown) const;

  // The example of the version, or of the latest.
  std::optional<std::string> example(std::string_view type, std::optional<std::string_view> version) const;
  // The first type that matches the pattern and has an example.
  std::optional<std::string> type_with_example(std::string_view pattern) const;
  bool has(std::string_view type) const { return types_.contains(type); }
  size_t size() const { return types_.size(); }

 private:
  struct Version {
    std::string name;
    std::string schema_text;
    std::optional<schema::Schema> schema;  // compiled only where it is used
    std::optional<std::string> example;
  };
  struct Type {
    Validation validation;
    std::vector<Version> versions;
  };
  static const Version* choose(const Type& type, std::optional<std::string_view> version);

  std::map<std::string, Type, std::less<>> types_;
  bool has_validation_ = false;
};

// Follows the control log; a change is seen on every node within a second.
class CatalogueCache {
 public:
  // The cached entry if it is up to date; otherwise null: load() it.
  const Catalogue* find() const { return is_stale_ ? nullptr : catalogue_.get(); }
  // Reads it all. A call during another one gets the previous catalogue, if there is one.
  runtime::Task<std::shared_ptr<const Catalogue>> load(pg::Link& link);
  std::shared_ptr<const Catalogue> last() const { return catalogue_; }
  // A load is in progress, and there is an older catalogue to use meanwhile.
  bool is_being_read() const { return is_loading_ && catalogue_ != nullptr; }

  void apply(std::span<const Change> changes);

 private:
  std::shared_ptr<const Catalogue> catalogue_;
  bool is_stale_ = false;
  bool is_loading_ = false;
  uint64_t generation_ = 0;
};

}  // namespace postrider::registry
