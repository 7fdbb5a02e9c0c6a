// Validates events against the catalogue of event types, before they are published.
#pragma once

#include <memory>
#include <optional>

#include "postrider/api/wire/routes.hpp"
#include "postrider/publish/new_event.hpp"
#include "postrider/registry/catalogue.hpp"

namespace postrider::api {

// False while it is known that no event type is validated.
bool needs_catalogue(const Call& call);

// Null if no event type is validated. Reads the database only after a change of the catalogue.
Task<std::shared_ptr<const registry::Catalogue>> catalogue_for_publishing(const Call& call);

// The reason why the event is rejected, or no value; a warning is logged and counted. `at` is the pointer of
// the event in the body: "" or "/3". Without a catalogue every event is valid.
std::optional<http::Problem> validate(const Call& call, const registry::Catalogue* catalogue,
                                      const publish::NewEvent& event, const std::string& at);

}  // namespace postrider::api
