#include "postrider/cli/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/help.hpp"
#include "postrider/cli/report.hpp"

namespace postrider::cli {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

std::string error_of(const Words& words) {
  try {
    parse_words(command_table(), words);
  } catch (const Misuse& error) {
    return error.what();
  }
  return "";
}

Given given(const Words& words) {
  return parse_words(command_table(), words).given;
}

TEST(Parsing, NamesTheWordThatIsWrong) {
  EXPECT_THAT(error_of({"tenat", "list"}), HasSubstr("Unknown command `tenat`. Did you mean `tenant`?"));
  EXPECT_THAT(error_of({"tenant", "lst"}),
              HasSubstr("Unknown command `lst` for `postrider tenant`. Did you mean `list`?"));
  EXPECT_THAT(error_of({"tenant", "list", "--limt", "3"}),
              HasSubstr("Unknown option --limt for `postrider tenant list`. Did you mean `--limit`?"));
  EXPECT_THAT(error_of({"create", "tenant", "a"}), HasSubstr("Did you mean `postrider tenant create`?"));
  EXPECT_THAT(error_of({"key", "create"}), HasSubstr("admin, operator"));
  EXPECT_THAT(error_of({"--foo"}), HasSubstr("Unknown option --foo."));
  EXPECT_THAT(error_of({"tenant"}), HasSubstr("Missing command."));
  EXPECT_THAT(error_of({"tenant", "show"}), HasSubstr("Missing argument <tenant>: Tenant ID."));
  EXPECT_THAT(error_of({"tenant", "show", "a", "b"}), HasSubstr("Unexpected argument \"b\"."));
  EXPECT_THAT(error_of({"tenant", "list", "-o", "csv"}),
              HasSubstr("Invalid value \"csv\" for --output: expected wide, json, yaml, name."));
  EXPECT_THAT(error_of({"serve", "--listen"}), HasSubstr("--listen needs a value"));
  EXPECT_THAT(error_of({"tenant", "list", "--limit", "1", "--limit", "2"}),
              HasSubstr("--limit was given more than once."));
  EXPECT_THAT(error_of({"tenant", "list", "--all=yes"}), HasSubstr("--all takes no value."));
  const std::string missing = error_of({"endpoint", "create", "acme"});
  EXPECT_THAT(missing, HasSubstr("--url is required"));
  EXPECT_THAT(missing, HasSubstr("--event-type is required"));
  EXPECT_EQ(error_of({"endpoint", "create", "acme", "--file", "-"}), "");
}

TEST(Parsing, TakesValuesInEveryUsualForm) {
  const Given all = given({"endpoint", "create", "acme", "--url=https://x", "--event-type", "a",
                           "--event-type", "b.*", "-o", "json"});
  EXPECT_EQ(all.at("tenant"), Words{"acme"});
  EXPECT_EQ(all.at("--url"), Words{"https://x"});
  EXPECT_EQ(all.at("--event-type"), (Words{"a", "b.*"}));
  EXPECT_EQ(all.at("--output"), Words{"json"});
  EXPECT_EQ(given({"event", "publish", "acme", "a.b", "--", "-5"}).at("data"), Words{"-5"});
  EXPECT_EQ(given({"tenant", "list", "--key-file", "-"}).at("--key-file"), Words{"-"});
}

TEST(Parsing, TakesATenantByPositionOrByOption) {
  EXPECT_EQ(given({"endpoint", "show", "hooks", "--tenant", "acme"}).at("tenant"), Words{"acme"});
  EXPECT_EQ(given({"endpoint", "show", "hooks", "--tenant=acme"}).at("endpoint"), Words{"hooks"});
  EXPECT_EQ(given({"delivery", "list", "acme"}).at("--tenant"), Words{"acme"});
}

TEST(Parsing, KnowsWhatPeopleTypeElsewhere) {
  EXPECT_EQ(parse_words(command_table(), {"tenants", "ls"}).command->name, "list");
  EXPECT_EQ(parse_words(command_table(), {"tenant", "get", "a"}).command->name, "show");
  EXPECT_EQ(parse_words(command_table(), {"tenant", "rm", "a"}).command->name, "delete");
  EXPECT_EQ(parse_words(command_table(), {"key", "rm", "a"}).command->name, "revoke");
  EXPECT_EQ(parse_words(command_table(), {"publish", "a", "b.c"}).command->name, "publish");
  EXPECT_EQ(parse_words(command_table(), {"start"}).command->name, "serve");
  EXPECT_EQ(parse_words(command_table(), {"event-type", "create", "a", "--file", "-"}).command->name, "put");
  EXPECT_EQ(command_first({"--json", "--server", "x", "tenant", "list"}),
            (Words{"tenant", "list", "--json", "--server", "x"}));
}

// Every command that can be run, with the words that name it.
void each_command(const std::vector<Command>& commands, const Words& before,
                  const std::function<void(const Command&, const Words&)>& visit) {
  for (const Command& command : commands) {
    Words words = before;
    words.push_back(command.name);
    if (!command.is_group()) visit(command, words);
    each_command(command.commands, words, visit);
  }
}

// As a shell splits them: quotes are only used around whole words here.
Words shell_words(const std::string& line) {
  Words words;
  std::string word;
  char quote = 0;
  bool is_word = false;
  for (const char c : line) {
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      is_word = true;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && c == ' ') {
      if (is_word) words.push_back(word);
      word.clear();
      is_word = false;
    } else {
      word += c;
      is_word = true;
    }
  }
  if (is_word) words.push_back(word);
  return words;
}

TEST(Examples, AreThereForEveryCommandAndCanBeParsed) {
  each_command(command_table(), {}, [](const Command& command, const Words& words) {
    EXPECT_FALSE(command.examples.empty()) << words.back() << " of " << words.front();
    for (const std::string& example : command.examples) {
      if (example.find("$(") != std::string::npos) continue;  // used inside another command
      Words typed = shell_words(example);
      ASSERT_FALSE(typed.empty());
      EXPECT_EQ(typed.front(), "postrider");
      typed.erase(typed.begin());
      typed.erase(std::find(typed.begin(), typed.end(), ">"), typed.end());  // the shell redirects the output
      EXPECT_EQ(error_of(typed), "") << example;
    }
  });
}

TEST(Help, FitsTheTerminal) {
  for (const size_t columns : {80u, 100u}) {
    each_command(command_table(), {}, [columns](const Command&, const Words& words) {
      std::istringstream lines(help_text(command_table(), words, columns));
      for (std::string line; std::getline(lines, line);) {
        const bool is_whole = line.find("postrider ") != std::string::npos || line.starts_with("  --") ||
                              line.starts_with("  -") || line.starts_with("Usage");
        if (!is_whole) EXPECT_LE(display_width(line), columns) << line;
      }
    });
  }
}

TEST(Help, MarksRequiredOptions) {
  const std::string text = help_text(command_table(), {"endpoint", "create"}, 100);
  EXPECT_THAT(text,
              HasSubstr("Usage: postrider endpoint create <tenant> --url URL --event-type TYPE [options]"));
  EXPECT_THAT(text, HasSubstr("(required)"));
}

TEST(Help, HasTopics) {
  EXPECT_FALSE(unknown_help_topic(command_table(), {"help"}));
  EXPECT_THAT(help_text(command_table(), {"options"}, 100), HasSubstr("-o, --output"));
  const std::string settings = help_text(command_table(), {"settings"}, 100);
  for (const char* title :
       {"HTTP server", "Retention", "Logs", "--request-timeout DURATION", "--allow-http true|false"})
    EXPECT_THAT(settings, HasSubstr(title));
}

TEST(Problems, AreToldInTermsOfOptions) {
  const Command& create =
      *parse_words(command_table(), {"endpoint", "create", "a", "--url", "b", "--event-type", "c"}).command;
  EXPECT_EQ(parameter_of(create, "/event_types/0"), "--event-type");
  EXPECT_EQ(parameter_of(create, "/timeout_ms"), "--timeout");
  EXPECT_EQ(parameter_of(create, "/url"), "--url");
  EXPECT_EQ(parameter_of(create, "/something"), "/something");
  EXPECT_EQ(parameter_of(create, "/secret"), "--secret-file");
  EXPECT_EQ(in_units(create, "/timeout_ms", "must be an integer from 100 to 120000"),
            "must be from 100ms to 2m");
  EXPECT_EQ(in_units(create, "/give_up_seconds", "must be an integer from 1 to 2592000"),
            "must be from 1s to 30d");
  EXPECT_EQ(in_units(create, "/timeout_ms", "must be at most 30,000, the limit for customers"),
            "must be at most 30s, the limit for customers");
  EXPECT_EQ(in_units(create, "/max_attempts", "must be an integer from 1 to 100"),
            "must be an integer from 1 to 100");
  const Command& publish = *parse_words(command_table(), {"event", "publish", "a", "b"}).command;
  EXPECT_EQ(parameter_of(publish, "/type"), "<type>");
  const Command& list = *parse_words(command_table(), {"delivery", "list"}).command;
  EXPECT_EQ(parameter_of(list, "since"), "--since");
}

}  // namespace
}  // namespace postrider::cli
