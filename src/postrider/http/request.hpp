// A request as a handler gets it: complete (head and body), validated, and valid until the
// handler's task ends. Views point into the connection's buffer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace postrider::runtime {
class Loop;
}

namespace postrider::http {

enum class Method { get, head, post, put, patch, delete_, options, other };

std::string_view method_name(Method method);  // "GET"; "other" for a method without routes
Method parse_method(std::string_view name);   // methods are case-sensitive

struct Field {
  std::string_view name;
  std::string_view value;  // white space around it removed
};

struct Parameter {
  std::string name;
  std::string value;
};

struct Request {
  Method method = Method::other;
  std::string_view path;         // as sent, still percent-encoded, without the query; begins with '/'
  std::string_view target;       // the path and the query, as sent
  std::vector<Parameter> query;  // decoded, in order
  std::vector<Parameter> path_parameters;  // set by the router, decoded
  std::vector<Field> fields;               // in order
  std::string_view body;                   // exact bytes, transfer coding removed
  std::string id;                          // "req_…", made here; also sent as x-request-id
  std::string remote_address;              // the client's address, as reported by trusted proxies
  runtime::Loop* loop = nullptr;           // the loop that the handler runs on
  bool is_authenticated = false;           // set by the handler once the caller is authenticated

  // First field of that name, in any case. Content-Length, Host and Transfer-Encoding occur at most once.
  std::optional<std::string_view> header(std::string_view name) const;
  std::optional<std::string_view> query_value(std::string_view name) const;  // the first of that name
  std::string_view path_parameter(
      std::string_view name) const;  // requesting one that does not exist is a bug
};

// "a%20b" to "a b". No value for an invalid escape, a NUL or a result that is not UTF-8.
// In a query a plus sign is a space.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space = false);
std::optional<std::vector<Parameter>> parse_query(std::string_view query);

}  // namespace postrider::http
