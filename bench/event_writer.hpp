// Renders publish requests: events spread evenly over tenants and, by event type, over each tenant's
// endpoints.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct EventShape {
  std::string tenant_prefix = "bench-";  // tenants are bench-0, bench-1, …
  std::uint64_t tenants = 1;
  std::uint64_t types = 1;  // bench.e0, bench.e1, …: the endpoints of a tenant subscribe to one each
  std::string source{};  // not empty: inbound webhooks for this source, signed as GitHub does with `secret`
  std::string secret{};
  std::size_t data_bytes =
      160;  // of the rendered `data`; with the envelope a delivery is then about 300 bytes
};

struct NumberedEvent {
  std::uint64_t number;
  std::uint64_t published_ns;
};

class EventWriter {
 public:
  EventWriter(EventShape shape, const std::string& host, const std::string& key);

  // One whole HTTP request. Event n belongs to tenant n % tenants and type (n / tenants) % types.
  // The text is valid until the next call.
  const std::string& single(NumberedEvent event);
  const std::string& batch(std::uint64_t first_number, std::size_t count, std::uint64_t published_ns);

 private:
  const std::string& inbound(NumberedEvent event);
  void append_fields(std::string& out, NumberedEvent event) const;  // "type":…,"data":{…}
  std::uint64_t tenant_of(std::uint64_t number) const { return number % shape_.tenants; }
  void frame(const std::string& target);

  EventShape shape_;
  std::string common_fields_;
  std::string body_;
  std::string request_;
};

}  // namespace bench
