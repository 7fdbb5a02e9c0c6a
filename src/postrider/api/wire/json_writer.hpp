// Responses are written with base's JSON writer.
#pragma once

#include "postrider/base/json_writer.hpp"

namespace postrider::api {

using base::json_array;
using base::json_array_of_strings;
using base::JsonObject;

}  // namespace postrider::api
