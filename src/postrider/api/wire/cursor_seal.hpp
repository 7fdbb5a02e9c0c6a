// Cursors as callers see them: sealed for one list, its filters and the tenant of the
// key, so that they cannot be made up, nor be used for another list. The lists do not see this:
// routes.cpp opens cursors of requests and seals those of responses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "postrider/crypto/master_keys.hpp"
#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"
#include "postrider/model/ids.hpp"

namespace postrider::api {

struct CursorSeal {
  const crypto::MasterKeys& keys;
  std::string place;  // the list, its filters and the tenant

  // `limit` may change from page to page, all other parameters must be the same.
  static CursorSeal of(const crypto::MasterKeys& keys, const http::Request& request,
                       const std::optional<model::TenantId>& bound_to);

  std::string seal(std::string_view cursor) const;
  std::optional<std::string> open(std::string_view sealed) const;

  // Opens the request's `cursor` in place. One that is not ours becomes empty, which no list takes.
  void open_cursor(http::Request& request) const;
  // Seals `next_cursor`, the last member of a page.
  void seal_next_cursor(http::Response& response) const;
};

}  // namespace postrider::api
