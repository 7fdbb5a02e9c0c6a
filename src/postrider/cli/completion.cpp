// `postrider completion`: scripts for bash, zsh and fish, made from the command table.
#include <fmt/format.h>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"

namespace postrider::cli {

namespace {

// The words that may follow a path of commands: subcommands, or options with their values.
struct Completions {
  std::string path;  // "tenant list"; empty for the top
  const Command* command = nullptr;
  std::vector<std::pair<std::string, std::string>> words;  // word, help
};

void collect(const Command& command, const std::string& path, std::vector<Completions>& nodes) {
  Completions node{path, &command, {}};
  for (const Command& below : command.commands)
    if (!below.is_hidden) node.words.emplace_back(below.name, below.help);
  if (command.commands.empty()) {
    for (const Parameter& parameter : all_parameters(command))
      if (parameter.name.starts_with("--")) node.words.emplace_back(parameter.name, parameter.help);
    node.words.emplace_back("--help", "Show help for this command");
  }
  nodes.push_back(std::move(node));
  for (const Command& below : command.commands)
    collect(below, path.empty() ? below.name : path + " " + below.name, nodes);
}

std::vector<Completions> all_nodes() {
  static const Command root = group("postrider", "", command_table());
  std::vector<Completions> nodes;
  collect(root, "", nodes);
  nodes.front().words.emplace_back("help", "Show help for a command");
  return nodes;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string first_words(const Completions& node) {
  std::vector<std::string> words;
  for (const auto& [word, help] : node.words) words.push_back(word);
  return joined(words);
}

// Inside single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

template <class Visit>
void each_value_option(const Completions& node, const Visit& visit) {
  if (!node.command->commands.empty()) return;
  for (const Parameter& parameter : all_parameters(*node.command))
    if (parameter.name.starts_with("--") && parameter.kind != Parameter::Kind::flag) visit(parameter);
}

// IDs are known to the server only.
constexpr const char* kBashIds =
    "_postrider_ids() {\n"
    "  local ids\n"
    "  ids=$(\"${COMP_WORDS[0]}\" __complete -- \"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\n"
    "  COMPREPLY=($(compgen -W \"$ids\" -- \"$cur\"))\n"
    "}\n";

std::string bash_script() {
  std::string script =
      "# postrider completion for bash: eval \"$(postrider completion bash)\"\n"
      "_postrider() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' word next words=''\n"
      "  COMPREPLY=()\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    next=\"${path:+$path }$word\"\n"
      "    case \"|$_postrider_paths|\" in *\"|$next|\"*) path=$next ;; *) break ;; esac\n"
      "  done\n"
      "  case \"$path/$prev\" in\n";
  std::string paths, tables;
  for (const Completions& node : all_nodes()) {
    if (!node.path.empty()) paths += (paths.empty() ? "" : "|") + node.path;
    tables += fmt::format("    {}) words={} ;;\n", quoted(node.path), quoted(first_words(node)));
    each_value_option(node, [&](const Parameter& parameter) {
      const std::string at = quoted(node.path + "/" + parameter.name);
      if (!parameter.choices.empty())
        script += fmt::format("    {}) COMPREPLY=($(compgen -W {} -- \"$cur\")); return ;;\n", at,
                              quoted(joined(parameter.choices)));
      else if (parameter.value_name == "FILE")
        script += fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", at);
      else
        script += fmt::format("    {}) _postrider_ids; return ;;\n", at);
    });
  }
  return "_postrider_paths=" + quoted(paths) + "\n" + kBashIds + script + "  esac\n  case \"$path\" in\n" +
         tables +
         "  esac\n"
         "  case \"$words/$cur\" in --*/-*) ;; --*) _postrider_ids; [ ${#COMPREPLY[@]} -gt 0 ] && return ;; "
         "esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -F _postrider postrider\n";
}

std::string zsh_script() {
  std::string script =
      "#compdef postrider\n"
      "# postrider completion for zsh: postrider completion zsh > \"${fpath[1]}/_postrider\"\n"
      "_postrider() {\n"
      "  local path='' word next\n"
      "  local -a found\n"
      "  local -A known\n"
      "  known=(\n";
  std::string values, tables;
  for (const Completions& node : all_nodes()) {
    if (!node.path.empty()) script += "    " + quoted(node.path) + " 1\n";
    tables += "    " + quoted(node.path) + ")\n      found=(\n";
    for (const auto& [word, help] : node.words) tables += "        " + quoted(word + ":" + help) + "\n";
    tables += "      ) ;;\n";
    each_value_option(node, [&](const Parameter& parameter) {
      const std::string at = quoted(node.path + "/" + parameter.name);
      if (!parameter.choices.empty())
        values += fmt::format("    {}) compadd -- {}; return ;;\n", at, joined(parameter.choices));
      else
        values += fmt::format(
            "    {}) {}; return ;;\n", at,
            parameter.value_name == "FILE" ? "_files" : "ids || _message " + quoted(parameter.help));
    });
  }
  return script +
         "  )\n"
         "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
         "    next=\"${path:+$path }$word\"\n"
         "    if (( ${+known[$next]} )); then path=$next; else break; fi\n"
         "  done\n"
         "  ids() { local -a found; found=(${(f)\"$(${words[1]} __complete -- ${(@)words[2,CURRENT-1]} "
         "2>/dev/null)\"}); "
         "(( $#found )) && compadd -- $found }\n"
         "  case \"$path/${words[CURRENT-1]}\" in\n" +
         values + "  esac\n  case \"$path\" in\n" + tables +
         "  esac\n"
         "  [[ $found[1] == --* && ${words[CURRENT]} != -* ]] && ids && return\n"
         "  _describe 'postrider' found\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _postrider ]; then _postrider \"$@\"; else compdef _postrider postrider; "
         "fi\n";
}

std::string fish_script() {
  std::string script =
      "# postrider completion for fish: postrider completion fish | source\n"
      "function __postrider_at\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  set -l wanted (string split -n ' ' -- \"$argv[1]\")\n"
      "  set -l count (count $wanted)\n"
      "  if test $count -gt 0\n"
      "    test (count $words) -ge $count; or return 1\n"
      "    test \"$words[1..$count]\" = \"$argv[1]\"; or return 1\n"
      "  end\n"
      "  test \"$argv[2]\" = exact; or return 0\n"
      "  test (count $words) -eq $count\n"
      "end\n"
      "function __postrider_ids\n"
      "  set -l words (commandline -opc)\n"
      "  $words[1] __complete -- $words[2..-1] 2>/dev/null\n"
      "end\n"
      "complete -c postrider -f\n";
  for (const Completions& node : all_nodes()) {
    const bool is_group = !node.command->commands.empty();
    const std::string condition =
        fmt::format("-n \"__postrider_at '{}' {}\"", node.path, is_group ? "exact" : "below");
    for (const auto& [word, help] : node.words) {
      if (is_group || word == "--help") {
        script += fmt::format("complete -c postrider {} {} {} -d {}\n", condition, is_group ? "-a" : "-l",
                              is_group ? word : word.substr(2), quoted(help));
        continue;
      }
    }
    if (is_group) continue;
    script += fmt::format("complete -c postrider {} -a \"(__postrider_ids)\"\n", condition);
    for (const Parameter& parameter : all_parameters(*node.command)) {
      if (!parameter.name.starts_with("--")) continue;
      std::string takes;
      if (!parameter.choices.empty())
        takes = " -x -a " + quoted(joined(parameter.choices));
      else if (parameter.kind != Parameter::Kind::flag)
        takes = parameter.value_name == "FILE" ? " -r -F" : " -x -a \"(__postrider_ids)\"";
      script += fmt::format("complete -c postrider {} -l {}{} -d {}\n", condition, parameter.name.substr(2),
                            takes, quoted(parameter.help));
    }
  }
  return script;
}

int print(Invocation& in) {
  const std::string shell = in.argument("shell");
  const std::string script = shell == "bash" ? bash_script() : shell == "zsh" ? zsh_script() : fish_script();
  std::fputs(script.c_str(), stdout);
  return done;
}

}  // namespace

Command completion_command() {
  Parameter shell = argument("shell", "bash, zsh or fish");
  shell.choices = {"bash", "zsh", "fish"};
  return command("completion", "Print a completion script for your shell", {shell}, print, Needs::nothing)
      .example("eval \"$(postrider completion bash)\"");
}

}  // namespace postrider::cli
