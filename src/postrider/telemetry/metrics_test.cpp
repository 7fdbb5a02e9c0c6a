#include "postrider/telemetry/metrics.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <sstream>

namespace postrider::telemetry {
namespace {

// The text format, read strictly: "name{labels} value" lines and comments.
std::map<std::string, double> parse(const std::string& text) {
  std::map<std::string, double> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_NE(space, std::string::npos) << line;
    double value = 0;
    const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    EXPECT_TRUE(error == std::errc() && end == line.data() + line.size()) << line;
    EXPECT_TRUE(series.emplace(line.substr(0, space), value).second) << "twice: " << line;
  }
  return series;
}

TEST(Metrics, ExistAtZeroOnceTheyAreDeclared) {
  const Metrics metrics;
  metrics.counter("events_total", "Events.");
  metrics.counter_by("attempts_total", "Attempts.", LabelNames{"outcome", {"good", "bad"}},
                     LabelNames{"class", {"2xx", "none"}});
  metrics.gauge_by("depth", "Depth.", "state", {"pending", "done"});
  metrics.histogram("seconds", "Seconds.", {0.1, 1}, {{"batch", "settle"}});
  const auto series = parse(metrics.text());
  for (const auto& [name, value] : series) EXPECT_EQ(value, 0) << name;
  for (const char* name : {"events_total", "attempts_total{class=\"2xx\",outcome=\"good\"}",
                           "attempts_total{class=\"none\",outcome=\"bad\"}", "depth{state=\"pending\"}",
                           "depth{state=\"done\"}", "seconds_count{batch=\"settle\"}"})
    EXPECT_TRUE(series.contains(name)) << name;
}

TEST(Metrics, ShowWhatWasCounted) {
  const Metrics metrics;
  const auto attempts = metrics.counter_by("attempts_total", "Attempts.", LabelNames{"outcome", {"good"}},
                                           LabelNames{"class", {"2xx"}});
  metrics.counter("events_total", "Events.").add(3);
  attempts.at("good/2xx").add();
  metrics.gauge_by("depth", "Depth.", "state", {"pending"}).at("pending").set(7);
  metrics.histogram("seconds", "Seconds.", {0.0025, 0.005}).observe(0.003);
  auto series = parse(metrics.text());
  EXPECT_EQ(series["events_total"], 3);
  EXPECT_EQ(series["attempts_total{class=\"2xx\",outcome=\"good\"}"], 1);
  EXPECT_EQ(series["depth{state=\"pending\"}"], 7);
  EXPECT_EQ(series["seconds_bucket{le=\"0.0025\"}"], 0);
  EXPECT_EQ(series["seconds_bucket{le=\"0.005\"}"], 1);
}

TEST(Metrics, DeclaredTwiceAreOneSeries) {
  const Metrics metrics;
  metrics.counter("events_total", "Events.", {{"kind", "a"}}).add();
  metrics.counter("events_total", "Events.", {{"kind", "a"}}).add();
  EXPECT_EQ(parse(metrics.text())["events_total{kind=\"a\"}"], 2);
}

TEST(Metrics, KnowWhichLabelsTheyHave) {
  const Metrics metrics;
  const auto causes = metrics.counter_by("dead_lettered_total", "Dead letters.", "cause", {"expired"});
  EXPECT_NE(causes.find("expired"), nullptr);
  EXPECT_EQ(causes.find("bored"), nullptr);
  EXPECT_DEATH(causes.at("bored"), "");
}

TEST(Metrics, AHandleWithoutASeriesCountsNothing) {
  const Counter counter;
  counter.add();
  EXPECT_EQ(counter.value(), 0);
  Gauge().set(1);
  Histogram().observe(1);
}

}  // namespace
}  // namespace postrider::telemetry
