// Lets pages of named origins use the API from a browser (the CORS protocol of the Fetch standard). Without
// origins it passes everything on unchanged, so browsers block such requests. Keys are sent in Authorization,
// never in cookies, so no response allows credentials.
#pragma once

#include <string>
#include <vector>

#include "postrider/http/server/server.hpp"

namespace postrider::http {

class Cors : public Handler {
 public:
  // Origins as browsers send them, "https://app.example.com"; or one "*" for all.
  Cors(Handler& inner, std::vector<std::string> origins) : inner_(inner), origins_(std::move(origins)) {}

  size_t body_bytes_max(const Request& head) const override { return inner_.body_bytes_max(head); }
  runtime::Task<Admission> admit(Request& head) override;
  runtime::Task<Response> handle(Request& request) override;

 private:
  bool allows(std::string_view origin) const;
  void add_fields(Response& response, const Request& request) const;

  Handler& inner_;
  std::vector<std::string> origins_;
};

}  // namespace postrider::http
