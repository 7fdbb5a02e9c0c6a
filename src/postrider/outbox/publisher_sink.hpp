// Into this node's own database.
#pragma once

#include "postrider/outbox/sink.hpp"
#include "postrider/publish/publisher.hpp"

namespace postrider::outbox {

class PublisherSink : public Sink {
 public:
  explicit PublisherSink(publish::Publisher& publisher) : publisher_(publisher) {}
  runtime::Task<std::vector<SinkResult>> send(std::vector<publish::NewEvent> events) override;

 private:
  publish::Publisher& publisher_;
};

}  // namespace postrider::outbox
