#include "postrider/upkeep/notice.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace postrider::upkeep {

namespace {

std::string since(const Notice& notice) {
  return notice.failing_since ? " since " + base::to_rfc3339(*notice.failing_since) : "";
}

std::string why_disabled(const Notice& notice) {
  if (notice.cause == "gone") return "it responded with 410 Gone";
  if (notice.cause == "failing") return "every delivery attempt failed" + since(notice);
  return "an operator switched it off";
}

std::string subject_of(const Notice& notice) {
  const std::string what = notice.kind == "warning"    ? "failing"
                           : notice.kind == "disabled" ? "disabled"
                                                       : "has recovered";
  return "Webhook endpoint " + what + ": " + notice.endpoint;
}

std::string text_of(const Notice& notice) {
  std::string text = "Endpoint: " + notice.endpoint + "\nHost: " + notice.host + "\n\n";
  if (notice.kind == "warning")
    return text + "Every delivery attempt has failed" + since(notice) + ". That is " +
           std::to_string(notice.stage) +
           " % of the time after which the endpoint is\ndisabled.\n\nWhat to do: make the endpoint respond "
           "with a status from 200 to 299 within its timeout.\nPending events are retried automatically.\n";
  if (notice.kind == "disabled")
    return text + "The endpoint was disabled because " + why_disabled(notice) +
           ".\nNothing is sent to it any more, and pending deliveries became dead letters.\n\nWhat to do: "
           "repair the endpoint, test it, resume it, then replay the dead letters.\n";
  return text +
         "Deliveries to the endpoint succeed again. There is nothing to do; dead letters can be replayed.\n";
}

}  // namespace

Mail mail_of(const Notice& notice, const std::string& unsubscribe_url) {
  Mail mail;
  mail.subject = subject_of(notice);
  mail.text = text_of(notice) + "\nTo stop these notices: " + unsubscribe_url + "\n";
  mail.unsubscribe_url = unsubscribe_url;
  return mail;
}

std::string json_of(const Notice& notice) {
  boost::json::object document{{"type", "endpoint." + notice.kind},
                               {"tenant_id", notice.tenant},
                               {"endpoint_id", notice.endpoint},
                               {"host", notice.host}};
  if (notice.failing_since) document["failing_since"] = base::to_rfc3339(*notice.failing_since);
  if (notice.kind == "warning") document["percent"] = notice.stage;
  if (notice.cause) document["cause"] = *notice.cause;
  document["text"] = text_of(notice);
  return boost::json::serialize(document);
}

}  // namespace postrider::upkeep
