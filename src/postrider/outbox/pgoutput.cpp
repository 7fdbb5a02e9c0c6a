#include "postrider/outbox/pgoutput.hpp"

namespace postrider::outbox {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  uint64_t integer(size_t bytes) {
    uint64_t value = 0;
    for (const char byte : take(bytes)) value = value << 8 | static_cast<uint8_t>(byte);
    return value;
  }
  pg::Lsn lsn() { return pg::Lsn{integer(8)}; }
  std::string_view string() {
    const size_t end = left_.find('\0');
    if (end == std::string_view::npos) {
      is_good_ = false;
      return {};
    }
    const auto text = left_.substr(0, end);
    left_.remove_prefix(end + 1);
    return text;
  }
  std::string_view take(size_t bytes) {
    if (bytes > left_.size()) {
      is_good_ = false;
      return {};
    }
    const auto taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  bool is_good() const { return is_good_; }

 private:
  std::string_view left_;
  bool is_good_ = true;
};

Change decode_known(Reader& reader, char kind) {
  switch (kind) {
    case 'B':  // final position, time, transaction
      return Begin{reader.lsn()};
    case 'C': {  // flags, position of the commit, its end, time
      reader.take(9);
      return Commit{reader.lsn()};
    }
    case 'M': {
      Emitted message;
      message.is_transactional = (reader.integer(1) & 1) != 0;
      message.at = reader.lsn();
      message.prefix = reader.string();
      const auto length = static_cast<size_t>(reader.integer(4));
      message.content = reader.take(length);
      return message;
    }
    default:
      return OtherChange{};
  }
}

}  // namespace

std::optional<Change> decode(std::string_view bytes) {
  Reader reader(bytes);
  const std::string_view kind = reader.take(1);
  if (kind.empty()) return std::nullopt;
  const Change change = decode_known(reader, kind[0]);
  if (!reader.is_good()) return std::nullopt;
  return change;
}

}  // namespace postrider::outbox
