// Events against the catalogue of event types, before they are published.
#pragma once

#include <memory>
#include <optional>

#include "postrider/api/wire/routes.hpp"
#include "postrider/publish/new_event.hpp"
#include "postrider/registry/catalogue.hpp"

namespace postrider::api {

// Whether the catalogue has to be asked at all: not while it is known to judge nothing.
bool needs_catalogue(const Call& call);

// The catalogue to judge by; null when there is nothing to judge. Reads the database only after a change.
Task<std::shared_ptr<const registry::Catalogue>> catalogue_for_publishing(const Call& call);

// Why the event is refused, or nothing; a warning is logged and counted. `at` leads to the event in the body:
// "" or "/3". Null catalogue: nothing.
std::optional<http::Problem> judge(const Call& call, const registry::Catalogue* catalogue,
                                   const publish::NewEvent& event, const std::string& at);

}  // namespace postrider::api
