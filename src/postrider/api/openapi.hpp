// The OpenAPI document: one fragment per area in openapi/*.json, merged and embedded at build
// (tools/embed_openapi.py).
#pragma once

#include <string_view>

namespace postrider::api {

std::string_view openapi_document();

}  // namespace postrider::api
