#include "postrider/api/resources/configured_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "postrider/api/resources/source_document.hpp"
#include "postrider/config/load.hpp"
#include "postrider/inbox/source_secrets.hpp"

namespace postrider::api {

namespace {

using inbox::ConfiguredSource;

// "/signature/header" as people write it in the file: signature.header.
std::string spelled(std::string_view pointer) {
  std::string text(pointer.substr(pointer.starts_with('/') ? 1 : 0));
  std::replace(text.begin(), text.end(), '/', '.');
  return text;
}

class Reader {
 public:
  Reader(const config::SourceConfig& source, const registry::ReferencePolicy* policy)
      : source_(source), policy_(policy) {}

  ConfiguredSource read() {
    boost::json::object document = boost::json::parse(source_.document).as_object();
    inbox::NewSource wanted;
    FieldProblems problems;
    read_source_identity(document, wanted, problems);
    for (const auto* name : {"id", "provider"}) document.erase(name);
    if (problems.empty()) read_source(document, wanted.provider, wanted.settings, problems);
    if (!problems.empty()) reject(problems.front().pointer, problems.front().detail);
    ConfiguredSource read{wanted.id, wanted.provider, std::move(wanted.settings), {}};
    read_secrets(read);
    return read;
  }

 private:
  // The place of the field itself, or of the nearest thing around it that is in the file.
  std::string place(std::string pointer) const {
    while (!pointer.empty()) {
      const auto found = source_.places.find(pointer);
      if (found != source_.places.end()) return found->second;
      pointer.resize(pointer.rfind('/') == std::string::npos ? 0 : pointer.rfind('/'));
    }
    return source_.from;
  }
  [[noreturn]] void reject(const std::string& pointer, std::string_view detail) const {
    throw config::ConfigError(
        fmt::format("The source {}: {} ({}) {}.", source_.id, spelled(pointer), place(pointer), detail));
  }

  void read_secrets(ConfiguredSource& read) const {
    const size_t count = source_.secrets.size();
    const std::string key = source_.places.contains("/secrets") ? "/secrets" : "/secret";
    if (count > inbox::source_secrets_max)
      reject(key, fmt::format("must not be more than {}", inbox::source_secrets_max));
    for (size_t i = 0; i < count; ++i) {
      const std::string pointer = key == "/secrets" ? fmt::format("/secrets/{}", i) : key;
      std::string text = source_.secrets[i];
      const bool is_reference = registry::is_reference(text);
      if (is_reference && policy_ == nullptr) continue;
      if (is_reference) text = look_up(pointer, text);
      const auto fit = inbox::choose_source_secret(read.provider, read.settings.signature, text);
      if (!fit) reject(pointer, fit.error().detail);
      if (std::ranges::count(read.secrets, text) > 0) reject(pointer, "is listed twice");
      read.secrets.push_back(std::move(text));
    }
  }

  std::string look_up(const std::string& pointer, const std::string& reference) const {
    if (const auto why = registry::why_not(*policy_, reference)) reject(pointer, *why);
    auto found = registry::resolve(*policy_, reference);
    if (!found) reject(pointer, found.error());
    return std::move(*found);
  }

  const config::SourceConfig& source_;
  const registry::ReferencePolicy* policy_;
};

}  // namespace

std::vector<ConfiguredSource> read_configured_sources(const config::Config& config,
                                                      const registry::ReferencePolicy* policy) {
  std::vector<ConfiguredSource> sources;
  for (const config::SourceConfig& source : config.sources) sources.push_back(Reader(source, policy).read());
  return sources;
}

}  // namespace postrider::api
