// `--name value` flags of the benchmark tools. An unknown name or a missing value throws
// std::invalid_argument.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

class Flags {
 public:
  Flags(int argc, char** argv, std::initializer_list<std::string_view> known) {
    for (int i = 1; i < argc; i += 2) {
      const std::string_view name = argv[i];
      bool is_known = false;
      for (const auto candidate : known)
        if (name.starts_with("--") && name.substr(2) == candidate) is_known = true;
      if (!is_known) throw std::invalid_argument("unknown flag " + std::string{name});
      if (i + 1 >= argc) throw std::invalid_argument("no value for " + std::string{name});
      values_[std::string{name.substr(2)}] = argv[i + 1];
    }
  }

  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoull(found->second);
  }
  double real(const std::string& name, double otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stod(found->second);
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace bench
