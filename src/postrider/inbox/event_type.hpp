// The type of the event that a forwarded message becomes, from a template such as `stripe.{type}`.
#pragma once

#include <string>
#include <string_view>

#include "postrider/inbox/pick.hpp"

namespace postrider::inbox {

// Braces hold a member of the body ({type}), a JSON pointer into it ({/data/object}), or a header
// ({header:x-github-event}). Empty when it is well-formed, else a sentence.
std::string check_type_template(std::string_view text);

// Always an event type: what a value must not contain becomes an underscore, dots stay, a missing value is
// `unknown`, and a name that is too long is cut.
std::string event_type(std::string_view text, Picker& picker);

}  // namespace postrider::inbox
