// Sources as JSON documents.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "postrider/api/wire/problems.hpp"
#include "postrider/inbox/sources.hpp"

namespace postrider::api {

// Reads the settings; `provider` decides which fields exist.
void read_source(const boost::json::object& document, inbox::Provider provider,
                 inbox::SourceSettings& settings, FieldProblems& problems);
// Only of a document that makes a new source.
void read_source_identity(const boost::json::object& document, inbox::NewSource& source,
                          FieldProblems& problems);

// Fields that only some responses have.
struct SourceExtras {
  const std::vector<inbox::SourceRejections>* rejections = nullptr;
  const std::string* secret = nullptr;
  bool is_configured = false;  // by the file
};
std::string source_json(const inbox::Source& source, const std::string& public_url,
                        const SourceExtras& extras);

}  // namespace postrider::api
