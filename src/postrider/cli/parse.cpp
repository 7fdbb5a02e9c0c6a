#include "postrider/cli/parse.hpp"

#include <algorithm>
#include <optional>

#include "postrider/cli/help.hpp"

namespace postrider::cli {

namespace {

using Kind = Parameter::Kind;

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

class Parser {
 public:
  Parser(const Command& command, std::string path)
      : command_(command), path_(std::move(path)), parameters_(all_parameters(command)) {
    for (const Parameter& parameter : parameters_)
      if (!parameter.is_option()) positions_.push_back(&parameter);
  }

  Given parse(std::vector<std::string> words) {
    take_tenant_option(words);
    bool only_arguments = false;
    for (size_t at = 0; at < words.size(); ++at) {
      const std::string& word = words[at];
      if (!only_arguments && word == "--")
        only_arguments = true;
      else if (!only_arguments && word.size() > 1 && word.starts_with('-'))
        at = read_option(words, at);
      else
        read_argument(word);
    }
    check_missing();
    return std::move(given_);
  }

 private:
  [[noreturn]] void fail(const std::string& sentence) const {
    throw Misuse(sentence + "\n  Run `" + path_ + " --help` for usage.");
  }

  const Parameter* find(const std::string& name) const {
    for (const Parameter& parameter : parameters_)
      if (parameter.name == name || (!parameter.short_name.empty() && parameter.short_name == name))
        return &parameter;
    return nullptr;
  }

  [[noreturn]] void fail_unknown(const std::string& name) const {
    std::vector<std::string> known = {"--help"};
    for (const Parameter& parameter : parameters_)
      if (parameter.is_option()) known.push_back(parameter.name);
    fail("Unknown option " + name + " for `" + path_ + "`." + did_you_mean(name, known));
  }

  // Returns the position of the last word that belongs to the option.
  size_t read_option(const std::vector<std::string>& words, size_t at) {
    const std::string& word = words[at];
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const Parameter* parameter = find(name);
    if (parameter == nullptr) fail_unknown(name);
    std::vector<std::string>& values = given_[parameter->name];
    if (parameter->kind == Kind::flag) {
      if (equals != std::string::npos) fail(name + " takes no value.");
      return at;
    }
    if (!parameter->is_repeatable() && !values.empty()) fail(name + " was given more than once.");
    if (equals != std::string::npos) {
      add_value(*parameter, values, word.substr(equals + 1));
      return at;
    }
    if (at + 1 >= words.size() || words[at + 1].starts_with("--")) fail_no_value(*parameter);
    add_value(*parameter, values, words[++at]);
    while (parameter->kind == Kind::several && at + 1 < words.size() && !words[at + 1].starts_with('-'))
      add_value(*parameter, values, words[++at]);
    return at;
  }

  [[noreturn]] void fail_no_value(const Parameter& parameter) const {
    const std::string expected = parameter.choices.empty() ? parameter.name + " " + parameter.value_name
                                                           : joined(parameter.choices, ", ");
    fail(parameter.name + " needs a value: " + expected + ".");
  }

  void add_value(const Parameter& parameter, std::vector<std::string>& values, const std::string& value) {
    const auto& choices = parameter.choices;
    if (!choices.empty() && std::count(choices.begin(), choices.end(), value) == 0) {
      const std::string name = parameter.is_option() ? parameter.name : "<" + parameter.name + ">";
      fail("Invalid value \"" + value + "\" for " + name + ": expected " + joined(choices, ", ") + "." +
           did_you_mean(value, choices));
    }
    values.push_back(value);
  }

  // A tenant can be given by position or as --tenant, whichever a command documents: `endpoint list --tenant
  // acme` works like `endpoint list acme`, and `delivery list acme` like `delivery list --tenant acme`.
  void take_tenant_option(std::vector<std::string>& words) {
    if (positions_.empty() || positions_[0]->name != "tenant" || find("--tenant") != nullptr) return;
    const auto end = std::find(words.begin(), words.end(), "--");
    const auto at = std::find_if(words.begin(), end, [](const std::string& word) {
      return word == "--tenant" || word.starts_with("--tenant=");
    });
    if (at == end) return;
    const bool is_apart = *at == "--tenant";
    if (is_apart && at + 1 == words.end()) fail("--tenant needs a value: --tenant TENANT.");
    given_["tenant"] = {is_apart ? *(at + 1) : at->substr(std::string_view("--tenant=").size())};
    words.erase(at, at + (is_apart ? 2 : 1));
    positions_.erase(positions_.begin());
  }

  bool read_tenant(const std::string& word) {
    if (!positions_.empty() || find("--tenant") == nullptr || given_.contains("--tenant")) return false;
    given_["--tenant"] = {word};
    return true;
  }

  void read_argument(const std::string& word) {
    if (read_tenant(word)) return;
    if (next_ >= positions_.size()) {
      fail(positions_.empty() ? "`" + path_ + "` takes no arguments, but got \"" + word + "\"."
                              : "Unexpected argument \"" + word + "\".");
    }
    const Parameter& parameter = *positions_[next_];
    add_value(parameter, given_[parameter.name], word);
    if (parameter.kind != Kind::rest) ++next_;
  }

  bool is_given(const Parameter& parameter) const { return given_.contains(parameter.name); }

  void check_missing() const {
    for (const Parameter* parameter : positions_)
      if (parameter->kind == Kind::argument && !is_given(*parameter))
        fail("Missing argument <" + parameter->name + ">: " + parameter->help + ".");
    if (given_.contains("--file")) return;
    std::string missing;
    for (const Parameter& parameter : command_.parameters)
      if (parameter.is_required && !is_given(parameter))
        missing += (missing.empty() ? "" : "\n  ") + parameter.name + " is required: " + parameter.help +
                   (parameter.choices.empty() ? "." : ": " + joined(parameter.choices, ", ") + ".");
    if (!missing.empty()) fail(missing);
  }

  const Command& command_;
  std::string path_;
  std::vector<Parameter> parameters_;
  std::vector<const Parameter*> positions_;
  size_t next_ = 0;
  Given given_;
};

// `postrider create tenant` for `postrider tenant create`.
std::string turned_around(const std::vector<Command>& table, const std::vector<std::string>& words) {
  if (words.size() < 2) return "";
  const Command* group = find_command(table, words[1]);
  const Command* verb = group ? find_command(group->commands, words[0]) : nullptr;
  return verb ? " Did you mean `postrider " + group->name + " " + verb->name + "`?" : "";
}

}  // namespace

Parsed parse_words(const std::vector<Command>& table, const std::vector<std::string>& words) {
  const std::vector<Command>* commands = &table;
  const Command* command = nullptr;
  std::string path = "postrider";
  size_t at = 0;
  for (; at < words.size() && !commands->empty(); ++at) {
    if (words[at].starts_with('-')) break;
    const Command* found = find_command(*commands, words[at]);
    if (found == nullptr) break;
    command = found;
    path += " " + found->name;
    commands = &found->commands;
  }
  if (!commands->empty()) {
    const std::string what = at < words.size() ? unknown_word(*commands, path, words[at]) +
                                                     (at == 0 ? turned_around(table, words) : "")
                                               : "Missing command.";
    throw Misuse(what + "\n  Run `" + path + " --help` for the list of commands.");
  }
  return {command, Parser(*command, path).parse({words.begin() + static_cast<long>(at), words.end()})};
}

std::vector<std::string> command_first(std::vector<std::string> words) {
  std::vector<std::string> front;
  const std::vector<Parameter> common = common_parameters(Needs::server);
  while (!words.empty()) {
    const std::string name = words[0].substr(0, words[0].find('='));
    const auto found = std::find_if(common.begin(), common.end(), [&](const Parameter& parameter) {
      return parameter.name == name || parameter.short_name == name;
    });
    if (found == common.end() || name.empty()) break;
    const bool has_value = found->kind != Kind::flag && words[0].find('=') == std::string::npos;
    const size_t count = std::min<size_t>(has_value ? 2 : 1, words.size());
    front.insert(front.end(), words.begin(), words.begin() + static_cast<long>(count));
    words.erase(words.begin(), words.begin() + static_cast<long>(count));
  }
  words.insert(std::find(words.begin(), words.end(), "--"), front.begin(), front.end());
  return words;
}

}  // namespace postrider::cli
