#include "postrider/cli/setting_help.hpp"

#include <cctype>

#include "postrider/config/settings.hpp"

namespace postrider::cli {

namespace {

// The setting that a group begins with, in the order of the table of settings.
struct Group {
  std::string_view first_key;
  const char* title;
};
constexpr Group kGroups[] = {
    {"database_url", "Database, node and secrets"},
    {"listen", "HTTP server"},
    {"create_tenants", "Publishing, and defaults of endpoints"},
    {"allow_http", "Outgoing requests"},
    {"shards", "Performance"},
    {"retain_events", "Retention"},
    {"disable_after", "Endpoint health"},
    {"smtp_url", "Notices"},
    {"log_level", "Logs"},
};

std::string value_name(const config::Setting& setting) {
  const std::string_view key = setting.key, sample = setting.default_text;
  if (key.ends_with("_url")) return "URL";
  if (key.ends_with("_file")) return "FILE";
  if (key.ends_with("_dir")) return "DIRECTORY";
  if (sample == "true" || sample == "false") return "true|false";
  if (sample.ends_with("iB")) return "SIZE";
  if (sample.empty() || std::isdigit(static_cast<unsigned char>(sample[0])) == 0) return "VALUE";
  if (std::isdigit(static_cast<unsigned char>(sample.back())) == 0) return "DURATION";
  return sample.find_first_not_of("0123456789") == std::string_view::npos ? "N" : "VALUE";
}

}  // namespace

void add_setting_groups(std::string& text,
                        const std::function<void(std::string&, const SettingRows&)>& add_rows) {
  SettingRows rows;
  const auto flush = [&] {
    if (!rows.empty()) add_rows(text, rows);
    rows.clear();
  };
  for (const config::Setting& setting : config::settings()) {
    for (const Group& group : kGroups) {
      if (group.first_key != setting.key) continue;
      flush();
      text += std::string("\n") + group.title + "\n";
      if (&group == &kGroups[0])
        rows.emplace_back("--config FILE", "Settings file (default: ./postrider.toml)");
    }
    std::string help(setting.help);
    if (help.ends_with('.')) help.pop_back();
    const std::string_view preset =
        setting.default_note.empty() ? setting.default_text : setting.default_note;
    if (!preset.empty()) help += " (default: " + std::string(preset) + ")";
    const bool is_flag = setting.secrecy != config::Secrecy::masked;
    rows.emplace_back(is_flag ? setting.flag_name() + " " + value_name(setting) : setting.environment_name(),
                      std::move(help));
  }
  flush();
}

}  // namespace postrider::cli
