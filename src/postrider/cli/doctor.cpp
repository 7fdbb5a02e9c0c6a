// `postrider doctor`: checks everything a node depends on; each finding says what to do.
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/statvfs.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "postrider/cli/doctor.hpp"
#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/http/client/client.hpp"
#include "postrider/runtime/run_blocking.hpp"

namespace postrider::cli {

namespace {

using namespace std::chrono_literals;

std::string_view label(Finding::Level level) {
  switch (level) {
    case Finding::Level::ok:
      return "ok";
    case Finding::Level::warning:
      return "warning";
    case Finding::Level::problem:
      return "problem";
  }
  return "";
}

class Doctor {
 public:
  explicit Doctor(const config::Config& config) : config_(config) {}

  std::vector<Finding> examine(const std::optional<std::string>& url) {
    check_database(config_, findings_);
    disk();
    trust_store();
    if (url)
      egress(*url);
    else
      findings_.good("egress", "not checked; check a destination with --url https://…");
    return findings_.take();
  }

 private:
  using Level = Finding::Level;
  void disk() {
    for (const std::string& directory : {config_.data_dir, config_.archive_dir}) {
      if (directory.empty()) continue;
      std::error_code error;
      if (!std::filesystem::exists(directory, error)) {
        const bool is_needed = directory == config_.archive_dir;
        if (is_needed)
          findings_.add(Level::problem, "disk", directory + " does not exist",
                        "Create it: data is kept until it can be archived.");
        continue;
      }
      struct statvfs info{};
      if (::statvfs(directory.c_str(), &info) != 0) continue;
      const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) / (1 << 30);
      const double share =
          info.f_blocks == 0 ? 1 : static_cast<double>(info.f_bavail) / static_cast<double>(info.f_blocks);
      char text[128];
      std::snprintf(text, sizeof text, "%.1f GiB free (%.0f %%) in ", free, share * 100);
      if (free < 1 || share < 0.05)
        findings_.add(Level::problem, "disk", text + directory,
                      "Free up space: Postgres stops when the disk is full.");
      else
        findings_.good("disk", text + directory);
    }
  }

  void trust_store() {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    int count = 0;
    if (context != nullptr) {
      SSL_CTX_set_default_verify_paths(context);
      STACK_OF(X509_OBJECT)* found = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
      count = found == nullptr ? 0 : sk_X509_OBJECT_num(found);
      SSL_CTX_free(context);
    }
    try {
      http::TlsContext tls({.extra_ca_file = config_.extra_ca_file});
    } catch (const std::exception& error) {
      findings_.add(Level::problem, "tls store", error.what(), "Check POSTRIDER_EXTRA_CA_FILE.");
    }
    if (count == 0)
      findings_.add(Level::problem, "tls store",
                    "no trusted CA certificates: every https delivery would fail",
                    "Install ca-certificates.");
    else
      findings_.good("tls store", std::to_string(count) + " trusted CA certificates");
  }

  static std::string guard_advice(http::BlockedReason reason) {
    switch (reason) {
      case http::BlockedReason::plain_http:
        return "Blocked by the outbound URL policy. Set POSTRIDER_ALLOW_HTTP=true to allow http://.";
      case http::BlockedReason::port:
        return "Blocked by the outbound URL policy. POSTRIDER_ALLOW_PORTS lists the allowed ports.";
      default:
        return "Blocked by the outbound URL policy. POSTRIDER_ALLOW_NETWORKS allows private networks.";
    }
  }

  static std::string network_advice(http::NetError error) {
    using enum http::NetError;
    switch (error) {
      case name_not_found:
        return "Check the spelling of the host name.";
      case name_lookup_failed:
      case timeout_lookup:
        return "Check /etc/resolv.conf and the name servers.";
      case tls_expired:
        return "The receiver must renew its certificate.";
      case tls_wrong_host:
        return "The receiver's certificate is for another host name: check the URL, or the receiver's "
               "certificate.";
      case tls_untrusted:
        return "If the receiver uses a private CA, add its certificate with POSTRIDER_EXTRA_CA_FILE.";
      case tls_failed:
      case timeout_tls:
        return "Check that the receiver speaks TLS 1.2 or later at this port.";
      case connection_refused:
        return "Nothing accepts connections there: check host, port and whether the receiver is running.";
      case unreachable:
      case timeout_connect:
        return "Check the firewall's rules for outgoing connections, and the route.";
      case local_failure:
        return "Check POSTRIDER_BIND_ADDRESS and the limit of open files on this machine.";
      default:
        return "The connection works; check the receiver.";
    }
  }

  // The path of a delivery: name, policy, connection, TLS.
  void egress(const std::string& text) {
    const auto url = http::parse_url(text);
    if (!url) {
      findings_.add(Level::problem, "egress", "\"" + text + "\" is not a valid URL",
                    "Give a URL such as https://example.com/.");
      return;
    }
    http::GuardPolicy policy;
    policy.allow_http = config_.allow_http;
    policy.allow_networks = config_.allow_networks;
    policy.allow_ports = config_.allow_ports;
    const http::AddressGuard guard(policy);
    const http::TlsContext tls({.extra_ca_file = config_.extra_ca_file});
    runtime::Loop loop;
    http::Client client(loop, guard, tls, {});
    http::OutboundRequest request{.url = *url};
    request.method = "HEAD";
    request.deadline = base::BootClock::now() + 10s;
    const http::Exchange exchange = runtime::run_blocking(loop, client.send(request));
    client.close();
    if (const http::NetFailure* failure = exchange.failure()) {
      const std::string what =
          failure->detail.empty() ? std::string(http::describe(failure->error)) : failure->detail;
      const bool is_name = failure->error == http::NetError::name_not_found;
      findings_.add(
          Level::problem, is_name ? "names" : "egress", text + ": " + what,
          failure->blocked_reason ? guard_advice(*failure->blocked_reason) : network_advice(failure->error));
      return;
    }
    findings_.good("names", std::string(url->host()) + " was resolved");
    findings_.good("egress", text + " responded with " + std::to_string(exchange.answer()->status));
  }

  const config::Config& config_;
  Findings findings_;
};

int doctor(Invocation& in) {
  const config::Loaded loaded = in.settings();
  const std::vector<Finding> findings = Doctor(loaded.config).examine(in.value("--url"));
  bool is_well = true;
  json::array rows;
  for (const Finding& finding : findings) {
    is_well = is_well && finding.level != Finding::Level::problem;
    rows.push_back(json::object{{"status", label(finding.level)},
                                {"about", finding.about},
                                {"finding", finding.what},
                                {"advice", finding.advice}});
    if (!in.out().is_for_people()) continue;
    in.out().line(std::string(label(finding.level)) + "  " + finding.about + ": " + visible(finding.what));
    if (!finding.advice.empty()) in.out().line("    → " + visible(finding.advice));
  }
  if (!in.out().is_for_people()) in.out().json(rows);
  return is_well ? done : failed;
}

}  // namespace

Command doctor_command() {
  return command("doctor", "Check database, clock, disk, TLS, partitions and leases, with advice",
                 join({option("--url", "URL", "Also check whether deliveries can reach this URL")},
                      output_options()),
                 doctor, Needs::settings)
      .example("postrider doctor")
      .example("postrider doctor --url https://example.com/hooks");
}

}  // namespace postrider::cli
