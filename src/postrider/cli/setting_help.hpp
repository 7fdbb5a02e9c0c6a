// The settings of `serve` in groups, for help pages.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace postrider::cli {

using SettingRows = std::vector<std::pair<std::string, std::string>>;

// Appends a title per group; `add_rows` appends its rows (flag, explanation).
void add_setting_groups(std::string& text,
                        const std::function<void(std::string&, const SettingRows&)>& add_rows);

}  // namespace postrider::cli
