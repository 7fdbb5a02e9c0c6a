#include "postrider/config/outboxes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "postrider/config/suggest.hpp"
#include "postrider/config/values.hpp"

namespace postrider::config {

namespace {

constexpr size_t kNameMax = 64;
constexpr milliseconds kPollMin{10}, kPollMax{60'000};
constexpr seconds kRetainMin{60}, kRetainMax{10 * 365 * 86'400};

bool is_name(std::string_view text) {
  const auto is_fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kNameMax && text != "local" &&
         std::all_of(text.begin(), text.end(), is_fine);
}

class TableReader {
 public:
  explicit TableReader(const FileTable& table) : table_(table) {}

  OutboxConfig read() {
    const std::vector<std::string> known = {"name", "database_url", "database_url_file", "poll", "retain"};
    for (const auto& [key, value] : table_) {
      from_ = from_.empty() ? value.from : from_;
      if (std::ranges::count(known, key) > 0) continue;
      const std::string near = nearest(key, known);
      throw ConfigError(fmt::format("The key {} ({}) is not one of an outbox.{}", key, value.from,
                                    near.empty() ? "" : " Did you mean " + near + "?"));
    }
    OutboxConfig outbox;
    outbox.name = text("name");
    if (!is_name(outbox.name)) reject("name", "must be 1 to 64 of A-Z, a-z, 0-9, _ and -, and not local");
    const std::string url = text("database_url"), file = text("database_url_file");
    if (url.empty() == file.empty()) reject("database_url", "or database_url_file is needed, and only one");
    outbox.database_url = url.empty() ? read_secret_file(file, table_.at("database_url_file").from) : url;
    if (const auto poll = duration("poll", kPollMin, kPollMax)) outbox.poll = poll;
    if (const auto retain = duration("retain", kRetainMin, kRetainMax))
      outbox.retain = std::chrono::duration_cast<seconds>(*retain);
    return outbox;
  }
  const std::string& from() const { return from_; }

 private:
  [[noreturn]] void reject(std::string_view key, std::string_view what) const {
    throw ConfigError(
        fmt::format("An outbox's {} ({}) {}.", key, from_.empty() ? "[[outbox]]" : from_, what));
  }
  std::string text(const std::string& key) const {
    const auto found = table_.find(key);
    return found == table_.end() ? "" : std::string(trimmed(found->second.text));
  }
  std::optional<milliseconds> duration(const std::string& key, milliseconds least, milliseconds most) const {
    if (!table_.contains(key)) return std::nullopt;
    const auto parsed = parse_duration(text(key));
    if (!parsed.ok()) reject(key, parsed.error());
    if (*parsed < least || *parsed > most)
      reject(key, fmt::format("must be from {}ms to {}s", least.count(), most.count() / 1'000));
    return *parsed;
  }

  const FileTable& table_;
  std::string from_;
};

}  // namespace

void add_outboxes(const std::vector<FileTable>& tables, Loaded& loaded) {
  auto& outboxes = loaded.config.outboxes;
  for (const FileTable& table : tables) {
    TableReader reader(table);
    OutboxConfig outbox = reader.read();
    const auto is_same = [&](const OutboxConfig& other) { return other.name == outbox.name; };
    if (std::ranges::any_of(outboxes, is_same))
      throw ConfigError(fmt::format("The outbox {} ({}) is defined twice.", outbox.name, reader.from()));
    loaded.settings.push_back({.key = "outbox." + outbox.name,
                               .shown = without_password(outbox.database_url),
                               .from = reader.from()});
    outboxes.push_back(std::move(outbox));
  }
}

}  // namespace postrider::config
