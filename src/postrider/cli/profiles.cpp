// `postrider profile`: several servers, each with its key.
#include "postrider/cli/profiles.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "postrider/cli/groups.hpp"
#include "postrider/cli/invocation.hpp"
#include "postrider/http/url.hpp"

namespace postrider::cli {

namespace {

constexpr mode_t kOthers = 077;

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

Profiles parse_profiles(const std::string& path, const std::string& text) {
  json::error_code error;
  const json::value document = json::parse(text, error);
  const json::object* object = error ? nullptr : document.if_object();
  const json::value* servers = object ? object->if_contains("servers") : nullptr;
  if (!servers || !servers->is_object()) throw Misuse("The file " + path + " is not a valid profiles file.");
  Profiles profiles;
  profiles.current = text_at(*object, "current");
  for (const auto& member : servers->get_object()) {
    if (!member.value().is_object()) continue;
    const json::object& server = member.value().get_object();
    profiles.servers[std::string(member.key())] = {
        .url = text_at(server, "url"), .key = text_at(server, "key"), .ca_file = text_at(server, "ca_file")};
  }
  return profiles;
}

std::string profiles_json(const Profiles& profiles) {
  json::object servers;
  for (const auto& [name, server] : profiles.servers) {
    json::object one{{"url", server.url}};
    if (!server.key.empty()) one["key"] = server.key;
    if (!server.ca_file.empty()) one["ca_file"] = server.ca_file;
    servers[name] = std::move(one);
  }
  return json::serialize(json::object{{"current", profiles.current}, {"servers", std::move(servers)}}) + "\n";
}

// A server's URL, or a host and port; wrong ones are rejected here rather than at the first use.
std::string checked_url(const std::string& text) {
  const bool has_scheme = text.find("://") != std::string::npos;
  const auto url = http::parse_url(has_scheme ? text : "http://" + text);
  const bool is_name = has_scheme || text.find_first_of(".:") != std::string::npos || text == "localhost";
  if (!url || !is_name)
    throw Misuse("\"" + text +
                 "\" is not a valid server URL: expected something like https://postrider.example.com.");
  return has_scheme ? text : "http://" + text;
}

int add(Invocation& in) {
  const std::string path = profiles_path(in.environment());
  Profiles profiles = load_profiles(path);
  const std::string name = in.argument("name");
  ServerOptions server;
  server.url = checked_url(in.argument("url"));
  if (const auto file = in.value("--key-file")) server.key = read_secret(*file);
  if (const auto key = in.value("--key")) server.key = *key;
  server.ca_file = in.value("--ca-file").value_or("");
  const bool has_key = !server.key.empty();
  profiles.servers[name] = std::move(server);
  if (profiles.current.empty()) profiles.current = name;
  save_profiles(path, profiles);
  in.out().note("Saved profile \"" + name + "\"" +
                (profiles.current == name ? " and made it current."
                                          : ". Switch to it with `postrider profile use " + name + "`."));
  if (!has_key) in.out().note("The profile has no API key; add one with --key-file.");
  return done;
}

Profiles load_with(const std::string& path, const std::string& name) {
  Profiles profiles = load_profiles(path);
  if (!profiles.servers.contains(name))
    throw Misuse("Unknown profile `" + name + "`. Run `postrider profile list` to see your profiles.");
  return profiles;
}

int use(Invocation& in) {
  const std::string path = profiles_path(in.environment());
  Profiles profiles = load_with(path, in.argument("name"));
  profiles.current = in.argument("name");
  save_profiles(path, profiles);
  in.out().note("Now using profile \"" + profiles.current + "\" (" + profiles.servers[profiles.current].url +
                ").");
  return done;
}

int remove(Invocation& in) {
  const std::string path = profiles_path(in.environment());
  Profiles profiles = load_with(path, in.argument("name"));
  profiles.servers.erase(in.argument("name"));
  if (profiles.current == in.argument("name")) profiles.current.clear();
  save_profiles(path, profiles);
  return done;
}

// Keys are not shown.
int list(Invocation& in) {
  const Profiles profiles = load_profiles(profiles_path(in.environment()));
  json::array rows;
  for (const auto& [name, server] : profiles.servers)
    rows.push_back(json::object{{"name", name},
                                {"url", server.url},
                                {"has_key", !server.key.empty()},
                                {"in_use", name == profiles.current}});
  const json::value response = json::object{{"data", std::move(rows)}};
  in.out().list(response, {{"NAME", "/name"}, {"URL", "/url"}, {"KEY", "/has_key"}, {"CURRENT", "/in_use"}},
                "No profiles yet. Create one with `postrider profile add NAME URL --key-file FILE`.");
  return done;
}

}  // namespace

std::string profiles_path(const config::Environment& environment) {
  const auto directory = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::string base = directory("XDG_CONFIG_HOME");
  if (base.empty() && directory("HOME").empty()) return "";
  if (base.empty()) base = directory("HOME") + "/.config";
  return base + "/postrider/profiles.json";
}

Profiles load_profiles(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & kOthers) != 0)
    throw Misuse("The file " + path + " contains API keys and is readable by other users. Run `chmod 600 " +
                 path + "`.");
  return parse_profiles(path, read_text(path));
}

void save_profiles(const std::string& path, const Profiles& profiles) {
  if (path.empty()) throw Misuse("Profiles cannot be saved: neither HOME nor XDG_CONFIG_HOME is set.");
  const std::filesystem::path file(path);
  std::filesystem::create_directories(file.parent_path());
  // Written apart and renamed: a crash leaves the old file or the new one.
  const std::string fresh = path + "." + std::to_string(::getpid());
  const std::string text = profiles_json(profiles);
  const int descriptor = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool is_written =
      descriptor >= 0 && ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (descriptor >= 0) ::close(descriptor);
  if (!is_written || std::rename(fresh.c_str(), path.c_str()) != 0) {
    const std::error_code error(errno, std::generic_category());
    ::unlink(fresh.c_str());
    throw std::system_error(error, path);
  }
}

Command profile_commands() {
  const Parameter name = argument("name", "Profile name");
  return group("profile", "Manage named servers and their keys",
               {command("add", "Add or replace a profile",
                        {name, argument("url", "Server URL, such as https://postrider.example.com"),
                         option("--key", "KEY", "API key. Visible in the process list; prefer --key-file"),
                         option("--key-file", "FILE", "File with the API key (- for standard input)"),
                         option("--ca-file", "FILE", "PEM file with additional trusted CA certificates")},
                        add, Needs::nothing)
                    .example("postrider profile add prod https://postrider.example.com --key-file key.txt"),
                command("use", "Make a profile the current one", {name}, use, Needs::nothing)
                    .example("postrider profile use prod"),
                command("list", "List profiles (keys are not shown)", output_options(), list, Needs::nothing)
                    .example("postrider profile list"),
                command("remove", "Remove a profile", {name}, remove, Needs::nothing)
                    .example("postrider profile remove prod")});
}

}  // namespace postrider::cli
