#include "postrider/cli/remote.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "postrider/base/version.hpp"
#include "postrider/cli/open_policy.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/runtime/run_blocking.hpp"

namespace postrider::cli {

namespace {

namespace json = boost::json;

constexpr size_t kResponseMax = 256 << 20;

void append_escaped(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '_' || c == '.' || c == '~' || c == '*';
    if (is_plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
}

// A stream and a long poll may be silent for long; each call has its own deadline.
http::ClientOptions client_options() {
  http::ClientOptions options;
  options.body_wait_max = std::chrono::hours(24);
  return options;
}

http::Url parse_server(const std::string& text, const std::string& target) {
  std::string whole = text;
  while (whole.ends_with('/')) whole.pop_back();
  if (whole.find("://") == std::string::npos) whole = "http://" + whole;
  auto url = http::parse_url(whole + target);
  if (!url)
    throw ServerUnreachable("Invalid server URL \"" + text +
                            "\": " + std::string(http::describe(url.error())));
  return std::move(*url);
}

std::string header_lines(const ServerOptions& options, const RemoteCall& call) {
  std::string lines;
  const auto add = [&lines](std::string_view name, const std::string& value) {
    if (!http::append_header(lines, name, value))
      throw ServerUnreachable("The header " + std::string(name) +
                              " cannot be sent: its value has characters that are not allowed in headers.");
  };
  add("user-agent", "postrider-cli/" + std::string(base::kVersion));
  add("accept", "application/json, */*");
  if (!options.key.empty()) add("authorization", "Bearer " + options.key);
  const bool has_type = std::any_of(call.headers.begin(), call.headers.end(),
                                    [](const auto& header) { return header.first == "content-type"; });
  if (call.body && !has_type) add("content-type", "application/json");
  for (const auto& [name, value] : call.headers) add(name, value);
  return lines;
}

[[noreturn]] void throw_problem(int status, const std::string& body) {
  json::error_code error;
  json::value document = json::parse(body, error);
  const json::object* object = error ? nullptr : document.if_object();
  if (!object || !object->contains("detail"))
    throw ServerProblem(status, "The server responded with status " + std::to_string(status) + ".", nullptr);
  const json::value& detail = object->at("detail");
  throw ServerProblem(status, detail.is_string() ? std::string(detail.get_string()) : "no detail",
                      std::move(document));
}

}  // namespace

Target& Target::with(std::string_view name, const std::optional<std::string>& value) {
  if (!value) return *this;
  query_ += query_.empty() ? '?' : '&';
  append_escaped(query_, name);
  query_ += '=';
  append_escaped(query_, *value);
  return *this;
}

void Target::add_segment(std::string_view segment) {
  path_ += '/';
  append_escaped(path_, segment);
}

struct Remote::State {
  explicit State(ServerOptions server)
      : options(std::move(server)),
        guard(open_policy()),
        tls({.extra_ca_file = options.ca_file}),
        client(loop, guard, tls, client_options()) {}
  ~State() { client.close(); }

  struct Got {
    int status = 0;
    std::string body;
    bool is_complete = true;
  };
  // `on_data` gets the body instead, if the response is a good one.
  Got exchange(const RemoteCall& call, const std::function<void(std::string_view)>* on_data) {
    const http::Url url = parse_server(options.url, call.target.text());
    const std::string lines = header_lines(options, call);
    http::OutboundRequest request{.url = url};
    request.method = call.method;
    request.headers = lines;
    if (call.body) request.body = *call.body;
    request.deadline = base::BootClock::now() + call.timeout;
    request.response_body_bytes_max = on_data ? SIZE_MAX : kResponseMax;
    request.response_kept_bytes_max = on_data ? 64 * 1024 : kResponseMax;
    request.on_response_body = on_data;
    request.response_silence_max = call.silence_max;
    const http::Exchange exchange = runtime::run_blocking(loop, client.send(request));
    if (const http::NetFailure* failure = exchange.failure())
      throw ServerUnreachable(
          options.url + " cannot be reached: " +
          (failure->detail.empty() ? std::string(http::describe(failure->error)) : failure->detail));
    const http::ReceivedResponse& response = *exchange.answer();
    if (!response.is_complete && !on_data)
      throw ServerUnreachable(options.url + " closed the connection in the middle of its response.");
    return {response.status, response.body_start, response.is_complete};
  }

  ServerOptions options;
  runtime::Loop loop;
  http::AddressGuard guard;
  http::TlsContext tls;
  http::Client client;
};

Remote::Remote(ServerOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Remote::~Remote() = default;

const std::string& Remote::url() const {
  return state_->options.url;
}

int Remote::status_of(const RemoteCall& call) {
  return state_->exchange(call, nullptr).status;
}

std::string Remote::text(const RemoteCall& call) {
  State::Got got = state_->exchange(call, nullptr);
  if (got.status >= 300) throw_problem(got.status, got.body);
  return std::move(got.body);
}

json::value Remote::call(const RemoteCall& call) {
  const std::string body = text(call);
  if (body.empty()) return nullptr;
  json::error_code error;
  json::value document = json::parse(body, error);
  if (error) throw ServerUnreachable(url() + " did not respond with JSON. Is it a postrider server?");
  return document;
}

json::value Remote::send(std::string method, const Target& target, const json::value& body) {
  RemoteCall sent{std::move(method), target};
  sent.body = json::serialize(body);
  return call(sent);
}

bool Remote::stream(const RemoteCall& call, const std::function<void(std::string_view)>& on_data) {
  const State::Got got = state_->exchange(call, &on_data);
  if (got.status >= 300) throw_problem(got.status, got.body);
  return got.is_complete;
}

}  // namespace postrider::cli
