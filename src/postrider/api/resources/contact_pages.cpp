// /contacts/confirm/{token} and /contacts/unsubscribe/{token}: the pages that links in mails lead to.
//
// GET shows a button and changes nothing, so programs that follow the links in mails neither confirm nor
// unsubscribe. POST acts; for unsubscribing it is also the one-click request of RFC 8058. The pages need no
// key and always have the same text: nothing that a caller or a customer wrote is in them.
#include <string>
#include <string_view>

#include "postrider/api/wire/routes.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/crypto/digest.hpp"
#include "postrider/registry/contact_links.hpp"

namespace postrider::api {

namespace {

using registry::LinkPurpose;

// Anyone can call these pages, so they may hold only few of the connections that keys work with.
constexpr int kInUseMax = 2;  // per loop

constexpr std::string_view kStyle =
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:15vh auto;padding:0 1rem;"
    "color-scheme:light dark}button{font:inherit;padding:.5rem 1rem}";

struct Page {
  int status = 200;
  std::string_view title, text;
  std::string_view button = {};  // none: the page shows a result
};

constexpr Page kAskConfirm{
    200, "Confirm this address",
    "Notices about webhook endpoints that fail or are disabled are sent to this e-mail "
    "address once you confirm it.",
    "Confirm"};
constexpr Page kAskUnsubscribe{
    200, "Unsubscribe this address",
    "No more notices about these webhook endpoints are sent to this e-mail address "
    "once you unsubscribe it.",
    "Unsubscribe"};
constexpr Page kConfirmed{200, "The address is confirmed",
                          "Notices are sent to it from now on. Every notice has a link to unsubscribe."};
constexpr Page kUnsubscribed{200, "The address is unsubscribed", "No more notices are sent to it."};
constexpr Page kInvalid{404, "This link does not work",
                        "It was used before, has expired, or is incomplete. If you have already confirmed or "
                        "unsubscribed the address, there is nothing to do."};
http::Problem too_busy() {
  return try_later(503, "unavailable", "The server is busy; try again in a moment.");
}

// The form has no action, so it posts to the address of the page, token included.
std::string html_of(const Page& page) {
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width\">\n<title>";
  html += page.title;
  html += "</title>\n<style>";
  html += kStyle;
  html += "</style>\n<h1>";
  html += page.title;
  html += "</h1>\n<p>";
  html += page.text;
  html += "</p>\n";
  if (!page.button.empty()) {
    html += "<form method=\"post\"><button>";
    html += page.button;
    html += "</button></form>\n";
  }
  html += "</html>\n";
  return html;
}

// No script, no frames, nothing from elsewhere; the style is allowed by its hash.
std::string policy() {
  return "default-src 'none'; style-src 'sha256-" + base::base64_encode(crypto::sha256(kStyle).view()) +
         "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
}

Response respond(const Page& page) {
  Response response;
  response.status = page.status;
  response.content_type = "text/html; charset=utf-8";
  response.body = html_of(page);
  response.header("content-security-policy", policy());
  response.header("referrer-policy", "no-referrer");  // the address of the page is a secret
  response.header("cache-control", "no-store");
  response.header("x-content-type-options", "nosniff");
  response.header("x-robots-tag", "noindex");
  return response;
}

// Counts a request for as long as it lives.
class InUse {
 public:
  explicit InUse(int& count) : count_(count) { ++count_; }
  ~InUse() { --count_; }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  int& count_;
};

Task<Response> follow(Call& call, LinkPurpose purpose) {
  std::string token = call.parameter("token");
  if (!registry::is_link_token(token)) co_return respond(kInvalid);
  if (call.services.contact_links_in_use >= kInUseMax) co_return call.reject(too_busy());
  const InUse in_use(call.services.contact_links_in_use);
  // The person's network address is not recorded: the tenant reads this log, too.
  registry::Caller caller;
  caller.id = "contact";
  caller.request_id = call.request.id;
  const pg::Pool::Handle lease = co_await call.database();
  const bool is_done = co_await registry::follow_contact_link(*lease, caller, purpose, std::move(token));
  if (!is_done) co_return respond(kInvalid);
  co_return respond(purpose == LinkPurpose::confirm ? kConfirmed : kUnsubscribed);
}

// Without the database: whether the link still works is seen when the button is pressed.
Response ask(const Call& call, const Page& page) {
  return respond(registry::is_link_token(call.parameter("token")) ? page : kInvalid);
}

Task<Response> ask_to_confirm(Call& call) {
  co_return ask(call, kAskConfirm);
}

Task<Response> ask_to_unsubscribe(Call& call) {
  co_return ask(call, kAskUnsubscribe);
}

Task<Response> confirm(Call& call) {
  return follow(call, LinkPurpose::confirm);
}

Task<Response> unsubscribe(Call& call) {
  return follow(call, LinkPurpose::unsubscribe);
}

}  // namespace

void add_contact_page_routes(Routes& routes) {
  const RouteOptions options{.body_bytes_max = 4 << 10};  // of the form, or of the one-click request
  routes.add(Method::get, "/contacts/confirm/{token}", Access::everyone, ask_to_confirm);
  routes.add(Method::post, "/contacts/confirm/{token}", Access::everyone, confirm, options);
  routes.add(Method::get, "/contacts/unsubscribe/{token}", Access::everyone, ask_to_unsubscribe);
  routes.add(Method::post, "/contacts/unsubscribe/{token}", Access::everyone, unsubscribe, options);
}

}  // namespace postrider::api
