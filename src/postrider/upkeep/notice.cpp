#include "postrider/upkeep/notice.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "postrider/http/url.hpp"

namespace postrider::upkeep {

namespace {

const char* const kRepair = "make the endpoint respond with a status from 200 to 299 within its timeout.";

std::string since(const Notice& notice) {
  return notice.failing_since ? " since " + base::to_rfc3339(*notice.failing_since) : "";
}

std::string number(int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string failures(const Notice& notice) {
  if (!notice.failed || *notice.failed == 0) return "Every delivery attempt has failed" + since(notice);
  if (*notice.failed == 1) return "The only delivery attempt" + since(notice) + " has failed";
  return "All " + number(*notice.failed, "delivery attempt") + since(notice) + " have failed";
}

std::string why_disabled(const Notice& notice) {
  if (notice.cause == "gone") return "it responded with 410 Gone";
  if (notice.cause == "failing") return "every delivery attempt failed" + since(notice);
  return "an operator switched it off";
}

std::string share(const Notice& notice) {
  return "About " + std::to_string(notice.failed.value_or(0)) + " of " +
         number(notice.attempts.value_or(0), "delivery attempt") + " in the last hour failed";
}

std::string endpoint_text(const Notice& notice) {
  const std::string retried = "Pending events are retried automatically.\n";
  if (notice.kind == "failing")
    return failures(notice) + ".\n\nWhat to do: " + kRepair + "\n" + retried +
           "If the endpoint goes on failing, it will be disabled. You will be warned before that.\n";
  if (notice.kind == "degraded")
    return share(notice) + ".\n\nWhat to do: look for errors and timeouts in the endpoint's log, and " +
           kRepair + "\n" + retried;
  if (notice.kind == "paused")
    return "The endpoint was paused because it rejected several deliveries in a row. " + failures(notice) +
           ".\nNothing is sent to it; events are queued.\n\nWhat to do: repair the endpoint, test it, then "
           "resume it.\n";
  if (notice.kind == "warning")
    return failures(notice) + ". That is " + std::to_string(notice.stage) +
           " % of the time after which the endpoint is\ndisabled.\n\nWhat to do: " + kRepair + "\n" + retried;
  if (notice.kind == "disabled")
    return "The endpoint was disabled because " + why_disabled(notice) +
           ".\nNo more deliveries are sent to it, and its pending deliveries are now dead letters.\n\nWhat "
           "to do: "
           "repair the endpoint, test it, resume it, then replay the dead letters.\n";
  return "Deliveries to the endpoint succeed again. No action is needed. Dead letters can be replayed.\n";
}

std::string causes_of(const DeadLetters::Endpoint& endpoint) {
  std::string text;
  for (const auto& [cause, count] : endpoint.causes)
    text += (text.empty() ? "" : ", ") + cause + " " + std::to_string(count);
  return text;
}

std::string dead_letters_text(const DeadLetters& letters) {
  std::string text =
      "Since " + letters.since + ", " +
      (letters.dead_letters == 1 ? "1 delivery" : std::to_string(letters.dead_letters) + " deliveries") +
      " to " + number(letters.endpoint_count, "endpoint") +
      " failed permanently and became dead letters.\nThey are not retried.\n\n";
  for (const auto& endpoint : letters.endpoints)
    text += endpoint.id + " (" + endpoint.host + "): " + std::to_string(endpoint.dead_letters) + " (" +
            causes_of(endpoint) + ")\n";
  const auto listed = static_cast<int64_t>(letters.endpoints.size());
  if (letters.endpoint_count > listed)
    text += "and " + number(letters.endpoint_count - listed, "more endpoint") + "\n";
  return text +
         "\nWhat to do: repair the endpoint, test it, then replay its dead letters.\nFurther dead letters "
         "are "
         "reported once a day.\n";
}

std::string subject_of(const Notice& notice) {
  if (notice.dead_letters) {
    const int64_t count = notice.dead_letters->dead_letters;
    return "Webhook deliveries failed permanently: " + std::to_string(count);
  }
  const std::string what = notice.kind == "degraded"    ? "failing in part"
                           : notice.kind == "paused"    ? "paused"
                           : notice.kind == "disabled"  ? "disabled"
                           : notice.kind == "recovered" ? "has recovered"
                                                        : "failing";
  return "Webhook endpoint " + what + ": " + notice.endpoint;
}

std::string text_of(const Notice& notice) {
  if (notice.dead_letters) return dead_letters_text(*notice.dead_letters);
  return "Endpoint: " + notice.endpoint + "\nHost: " + notice.host + "\n\n" + endpoint_text(notice);
}

void add_dead_letters(boost::json::object& document, const DeadLetters& letters) {
  document["dead_letters"] = letters.dead_letters;
  document["since"] = letters.since;
  document["endpoint_count"] = letters.endpoint_count;
  boost::json::array endpoints;
  for (const auto& endpoint : letters.endpoints) {
    boost::json::object causes;
    for (const auto& [cause, count] : endpoint.causes) causes[cause] = count;
    endpoints.push_back({{"endpoint_id", endpoint.id},
                         {"host", endpoint.host},
                         {"dead_letters", endpoint.dead_letters},
                         {"causes", std::move(causes)}});
  }
  document["endpoints"] = std::move(endpoints);
}

}  // namespace

DeadLetters read_dead_letters(std::string_view content) {
  const boost::json::value parsed = boost::json::parse(content);
  DeadLetters letters;
  letters.dead_letters = parsed.at("dead_letters").to_number<int64_t>();
  letters.since = base::to_rfc3339(*base::parse_rfc3339(parsed.at("since").as_string()));
  letters.endpoint_count = parsed.at("endpoint_count").to_number<int64_t>();
  for (const auto& each : parsed.at("endpoints").as_array()) {
    DeadLetters::Endpoint endpoint;
    endpoint.id = each.at("endpoint_id").as_string();
    endpoint.host = host_of(each.at("url").as_string());
    endpoint.dead_letters = each.at("dead_letters").to_number<int64_t>();
    for (const auto& cause : each.at("causes").as_object())
      endpoint.causes[cause.key()] = cause.value().to_number<int64_t>();
    letters.endpoints.push_back(std::move(endpoint));
  }
  return letters;
}

std::string host_of(std::string_view url) {
  const auto parsed = http::parse_url(std::string(url));
  return parsed ? std::string(parsed->host()) : std::string();
}

Mail mail_of(const Notice& notice, const std::string& unsubscribe_url) {
  Mail mail;
  mail.subject = subject_of(notice);
  mail.text = text_of(notice) + "\nTo stop these notices: " + unsubscribe_url + "\n";
  mail.unsubscribe_url = unsubscribe_url;
  return mail;
}

std::string json_of(const Notice& notice) {
  boost::json::object document{
      {"type", notice.dead_letters ? "delivery.dead_lettered" : "endpoint." + notice.kind},
      {"tenant_id", notice.tenant}};
  if (notice.dead_letters) {
    add_dead_letters(document, *notice.dead_letters);
  } else {
    document["endpoint_id"] = notice.endpoint;
    document["host"] = notice.host;
    if (notice.failing_since) document["failing_since"] = base::to_rfc3339(*notice.failing_since);
    if (notice.kind == "warning") document["percent"] = notice.stage;
    if (notice.kind != "recovered" && notice.kind != "disabled") {
      if (notice.attempts) document["attempts"] = *notice.attempts;
      if (notice.failed) document["failed"] = *notice.failed;
    }
    if (notice.cause) document["cause"] = *notice.cause;
  }
  document["text"] = text_of(notice);
  return boost::json::serialize(document);
}

}  // namespace postrider::upkeep
