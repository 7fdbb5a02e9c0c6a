// Where the events of another database's outbox go: the publisher of this node, or a postrider elsewhere.
#pragma once

#include <string>
#include <vector>

#include "postrider/publish/new_event.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::outbox {

struct SinkResult {
  enum class Kind {
    published,  // now or before: the id makes it the same event
    rejected,   // for what it says: counted on the row
    throttled,  // its tenant publishes too fast: the tenant's rows wait
    later,      // for another passing reason: the row stays as it is
  };
  Kind kind = Kind::later;
  std::string detail;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // One outcome per event, in order. Every event has an id. Does not throw.
  virtual runtime::Task<std::vector<SinkResult>> send(std::vector<publish::NewEvent> events) = 0;
  // Logs once that nothing can be published now, and makes its caller wait.
  virtual bool tells_itself() const { return false; }
};

}  // namespace postrider::outbox
