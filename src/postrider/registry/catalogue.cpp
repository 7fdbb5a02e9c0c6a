#include "postrider/registry/catalogue.hpp"

#include <algorithm>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <utility>

#include "postrider/model/event_pattern.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::registry {

namespace {

namespace json = boost::json;

constexpr size_t kDepthMax = 64;
constexpr size_t kFirstBlock = 8 << 10;  // enough for what most events parse into

ValidationResult invalid(Validation validation, std::vector<schema::Violation> violations) {
  return {
      validation == Validation::reject ? ValidationResult::Kind::rejected : ValidationResult::Kind::warned,
      std::move(violations)};
}

// Resets the flag however a load ends.
class Loading {
 public:
  explicit Loading(bool& flag) : flag_(flag) { flag_ = true; }
  ~Loading() { flag_ = false; }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

 private:
  bool& flag_;
};

std::vector<schema::Violation> violations_of(const schema::Schema& schema, std::string_view data) {
  unsigned char block[kFirstBlock];
  json::monotonic_resource memory(block, sizeof block);
  json::parse_options options;
  options.max_depth = kDepthMax;
  json::error_code error;
  const json::value value = json::parse(json::string_view(data.data(), data.size()), error, &memory, options);
  if (error) return {{"/data", "cannot be validated against the schema: " + error.message()}};
  if (schema.accepts(value)) return {};
  schema::Report report = schema.check(value);
  if (report.gave_up) report.violations = {{"", "takes too much work to validate against the schema"}};
  for (auto& violation : report.violations) violation.pointer = "/data" + violation.pointer;
  return report.violations;
}

}  // namespace

Catalogue::Catalogue(const std::vector<EventType>& types, const Catalogue* before) {
  for (const EventType& type : types) {
    Type& made = types_[type.name];
    made.validation = type.settings.validation;
    if (made.validation != Validation::off) has_validation_ = true;
    const auto known = before ? before->types_.find(type.name) : types_.end();
    for (const EventTypeVersion& version : type.settings.versions) {
      Version entry{version.version, version.schema.value_or(""), std::nullopt, version.example};
      const Version* same =
          before && known != before->types_.end() ? choose(known->second, version.version) : nullptr;
      if (made.validation == Validation::off || entry.schema_text.empty()) {
        // not used
      } else if (same && same->schema && same->schema_text == entry.schema_text) {
        entry.schema = same->schema;
      } else if (auto compiled = schema::Schema::compile(entry.schema_text)) {
        entry.schema = std::move(*compiled);
      } else {
        telemetry::log_error("schema_unusable")
            .field("event_type", type.name)
            .field("version", version.version)
            .field("error", compiled.error().pointer + " " + compiled.error().detail);
      }
      made.versions.push_back(std::move(entry));
    }
  }
}

const Catalogue::Version* Catalogue::choose(const Type& type, std::optional<std::string_view> version) {
  if (type.versions.empty()) return nullptr;
  if (!version) return &type.versions.back();
  const auto found = std::find_if(type.versions.begin(), type.versions.end(),
                                  [&](const Version& each) { return each.name == *version; });
  return found == type.versions.end() ? nullptr : &*found;
}

ValidationResult Catalogue::validate(const EventFacts& event, bool rejects_unknown) const {
  const auto type = types_.find(event.type);
  if (type == types_.end()) {
    if (!rejects_unknown) return {};
    return {ValidationResult::Kind::rejected, {{"/type", "is not in the catalogue of event types"}}};
  }
  if (type->second.validation == Validation::off || type->second.versions.empty()) return {};
  const Version* version = choose(type->second, event.version);
  if (version == nullptr)
    return invalid(type->second.validation, {{"/version", "is not a version of this event type"}});
  if (!version->schema) return {};
  auto violations = violations_of(*version->schema, event.data);
  if (violations.empty()) return {};
  return invalid(type->second.validation, std::move(violations));
}

std::optional<std::string> Catalogue::example(std::string_view type,
                                              std::optional<std::string_view> version) const {
  const auto found = types_.find(type);
  if (found == types_.end()) return std::nullopt;
  const Version* chosen = choose(found->second, version);
  return chosen ? chosen->example : std::nullopt;
}

std::optional<std::string> Catalogue::type_with_example(std::string_view pattern) const {
  const std::string_view prefix = pattern.ends_with('*') ? pattern.substr(0, pattern.size() - 1) : pattern;
  for (auto type = types_.lower_bound(prefix); type != types_.end(); ++type) {
    if (!type->first.starts_with(prefix)) break;
    const Version* latest = choose(type->second, std::nullopt);
    if (latest && latest->example && model::matches(pattern, type->first)) return type->first;
  }
  return std::nullopt;
}

runtime::Task<std::shared_ptr<const Catalogue>> CatalogueCache::load(pg::Link& link) {
  const Loading loading(is_loading_);
  const uint64_t generation = generation_;
  const std::vector<EventType> types = co_await list_event_types(link, "", event_types_max);
  catalogue_ = std::make_shared<const Catalogue>(types, catalogue_.get());
  is_stale_ = generation != generation_;
  co_return catalogue_;
}

void CatalogueCache::apply(std::span<const Change> changes) {
  for (const auto& change : changes) {
    if (change.kind != ChangeKind::event_type && change.kind != ChangeKind::other) continue;
    ++generation_;
    is_stale_ = true;
  }
}

}  // namespace postrider::registry
