// The metrics of the process: counters, gauges and histograms by name and labels. Each folder declares its
// own set, such as delivery/metrics.hpp; a series then exists with the value 0. Declaring a series twice
// returns the same one. prometheus-cpp keeps the numbers and writes the text; it stays behind this header.
// Threads: any.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace postrider::telemetry {

// A handle to a series. A default-constructed one counts nothing.
class Counter {
 public:
  Counter() = default;
  explicit Counter(prometheus::Counter& series) : series_(&series) {}
  void add(double count = 1) const;
  double value() const;

 private:
  prometheus::Counter* series_ = nullptr;
};

class Gauge {
 public:
  Gauge() = default;
  explicit Gauge(prometheus::Gauge& series) : series_(&series) {}
  void set(double value) const;
  void add(double change) const;
  double value() const;

 private:
  prometheus::Gauge* series_ = nullptr;
};

class Histogram {
 public:
  Histogram() = default;
  explicit Histogram(prometheus::Histogram& series) : series_(&series) {}
  void observe(double value) const;

 private:
  prometheus::Histogram* series_ = nullptr;
};

// The series of one family, by label value ("exhausted") or by two joined with a slash ("delivered/2xx").
// Asking for a value that is not known beforehand is a bug. A look-up compares a few short strings; hot paths
// keep the result.
template <class Series>
class Labelled {
 public:
  const Series& at(std::string_view labels) const;
  const Series* find(std::string_view labels) const;  // null when it is not known
  void insert(std::string labels, Series series) { series_.push_back({std::move(labels), series}); }

 private:
  struct Entry {
    std::string labels;
    Series series;
  };
  std::vector<Entry> series_;
};

using Labels = std::map<std::string, std::string>;
using Names = std::vector<std::string>;  // values of a label
using Boundaries = std::vector<double>;  // of a histogram's buckets
struct LabelNames {
  std::string label;
  Names values;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // One series. tools/lists.py reads these calls, so name and help are literals.
  Counter counter(const std::string& name, const std::string& help, const Labels& labels = {}) const;
  Gauge gauge(const std::string& name, const std::string& help, const Labels& labels = {}) const;
  Histogram histogram(const std::string& name, const std::string& help, const Boundaries& boundaries,
                      const Labels& labels = {}) const;

  // One series for each value of a label, or for each pair of values.
  Labelled<Counter> counter_by(const std::string& name, const std::string& help, const std::string& label,
                               const Names& values) const;
  Labelled<Counter> counter_by(const std::string& name, const std::string& help, const LabelNames& first,
                               const LabelNames& second) const;
  Labelled<Gauge> gauge_by(const std::string& name, const std::string& help, const std::string& label,
                           const Names& values) const;

  std::string text() const;  // Prometheus text format 0.0.4

 private:
  struct Registry;
  std::unique_ptr<Registry> registry_;
};

}  // namespace postrider::telemetry
