// Lists that are also parts of the export of a tenant. Each returns a page, by `limit` and `cursor`.
#pragma once

#include "postrider/api/wire/routes.hpp"

namespace postrider::api {

Task<Response> list_endpoints(Call& call);
Task<Response> list_deliveries(Call& call);
Task<Response> list_attempts(Call& call);
Task<Response> list_dead_letters(Call& call);
Task<Response> list_replays(Call& call);

}  // namespace postrider::api
