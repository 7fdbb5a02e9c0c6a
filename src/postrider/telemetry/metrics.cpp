#include "postrider/telemetry/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

#include "postrider/base/check.hpp"

namespace postrider::telemetry {

void Counter::add(double count) const {
  if (series_) series_->Increment(count);
}
double Counter::value() const {
  return series_ ? series_->Value() : 0;
}
void Gauge::set(double value) const {
  if (series_) series_->Set(value);
}
void Gauge::add(double change) const {
  if (series_) series_->Increment(change);
}
double Gauge::value() const {
  return series_ ? series_->Value() : 0;
}
void Histogram::observe(double value) const {
  if (series_) series_->Observe(value);
}

template <class Series>
const Series* Labelled<Series>::find(std::string_view labels) const {
  const auto found = std::find_if(series_.begin(), series_.end(),
                                  [&](const Entry& entry) { return entry.labels == labels; });
  return found == series_.end() ? nullptr : &found->series;
}

template <class Series>
const Series& Labelled<Series>::at(std::string_view labels) const {
  const Series* series = find(labels);
  CHECK(series);
  return *series;
}

template class Labelled<Counter>;
template class Labelled<Gauge>;
template class Labelled<Histogram>;

struct Metrics::Registry {
  prometheus::Registry registry;

  prometheus::Family<prometheus::Counter>& counters(const std::string& name, const std::string& help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Gauge>& gauges(const std::string& name, const std::string& help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
};

Metrics::Metrics() : registry_(std::make_unique<Registry>()) {}
Metrics::~Metrics() = default;

Counter Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) const {
  return Counter(registry_->counters(name, help).Add(labels));
}

Gauge Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) const {
  return Gauge(registry_->gauges(name, help).Add(labels));
}

Histogram Metrics::histogram(const std::string& name, const std::string& help, const Boundaries& boundaries,
                             const Labels& labels) const {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(registry_->registry);
  return Histogram(family.Add(labels, boundaries));
}

Labelled<Counter> Metrics::counter_by(const std::string& name, const std::string& help,
                                      const std::string& label, const Names& values) const {
  Labelled<Counter> series;
  for (const auto& value : values) series.insert(value, counter(name, help, {{label, value}}));
  return series;
}

Labelled<Counter> Metrics::counter_by(const std::string& name, const std::string& help,
                                      const LabelNames& first, const LabelNames& second) const {
  Labelled<Counter> series;
  for (const auto& one : first.values)
    for (const auto& two : second.values)
      series.insert(one + "/" + two, counter(name, help, {{first.label, one}, {second.label, two}}));
  return series;
}

Labelled<Gauge> Metrics::gauge_by(const std::string& name, const std::string& help, const std::string& label,
                                  const Names& values) const {
  Labelled<Gauge> series;
  for (const auto& value : values) series.insert(value, gauge(name, help, {{label, value}}));
  return series;
}

std::string Metrics::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, registry_->registry.Collect());
  return std::move(out).str();
}

}  // namespace postrider::telemetry
