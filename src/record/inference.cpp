// The keys of an inference record.
#include "record/inference.hpp"

namespace scalemark {
namespace record {

void Quantization::describe(Fields& fields) {
  fields.add("layers", &Quantization::layers, "whose weights are in int8").at_least(1);
  fields.add("weights", &Quantization::weights, "how weights are quantised");
  fields.add("convolution_activations", &Quantization::convolution_activations,
             "how inputs of convolutions are");
  fields.add("product_activations", &Quantization::product_activations,
             "how inputs of matrix products are");
  fields.add("relative_error", &Quantization::relative_error, "of the logits, against fp32")
      .at_least(0);
}

void Quantiles::describe(Fields& fields) {
  fields.add("mean", &Quantiles::mean).unit("s");
  fields.add("p50", &Quantiles::p50).unit("s");
  fields.add("p90", &Quantiles::p90).unit("s");
  fields.add("p99", &Quantiles::p99, "null below 100 queries, of a server 1,000").unit("s");
  fields.add("p99_9", &Quantiles::p99_9, "null below 1,000 queries, of a server 10,000").unit("s");
}

void Latency::describe(Fields& fields) {
  fields.add("mean", &Latency::mean)
      .unit("s")
      .above(0)
      .column(53, "latency_seconds_mean")
      .metric("latency_mean", "seconds", Better::faster);
  fields.add("p50", &Latency::p50)
      .unit("s")
      .above(0)
      .column(54, "latency_seconds_p50")
      .metric("latency_p50", "seconds", Better::faster);
  fields.add("p90", &Latency::p90)
      .unit("s")
      .above(0)
      .column(55, "latency_seconds_p90")
      .metric("latency_p90", "seconds", Better::faster);
  fields.add("p99", &Latency::p99, "null below 100 queries, of a server 1,000")
      .unit("s")
      .above(0)
      .column(56, "latency_seconds_p99")
      .metric("latency_p99", "seconds", Better::faster);
  fields.add("p99_9", &Latency::p99_9, "null below 1,000 queries, of a server 10,000")
      .unit("s")
      .above(0)
      .column(57, "latency_seconds_p99_9")
      .metric("latency_p99_9", "seconds", Better::faster);
  fields.add("samples", &Latency::samples, "of every query, one rank after the other")
      .unit("s")
      .filled()
      .above(0);
}

void QueueLength::describe(Fields& fields) {
  fields.add("mean", &QueueLength::mean, "over time, by Little's law").at_least(0);
  fields.add("max", &QueueLength::max, "when a pass began").at_least(0);
}

void TimerLateness::describe(Fields& fields) {
  fields.add("waits", &TimerLateness::waits, "of an idle server for an arrival").at_least(0);
  fields.add("mean", &TimerLateness::mean)
      .unit("s")
      .at_least(0)
      .otherwise("the server was never idle");
  fields.add("max", &TimerLateness::max)
      .unit("s")
      .at_least(0)
      .otherwise("the server was never idle");
}

void OfferedRate::describe(Fields& fields) {
  fields.add("arrival_rate", &OfferedRate::arrival_rate, "offered").unit("queries/s").above(0);
  fields.add("confirms", &OfferedRate::confirms, "a repeat of a rate that held the bound");
  fields.add("queries", &OfferedRate::queries, "that were to arrive").at_least(1);
  fields.add("answered", &OfferedRate::answered, "of them").at_least(0);
  fields.add("seconds", &OfferedRate::seconds, "of the slowest rank").unit("s").above(0);
  fields.add("latency_seconds", &OfferedRate::latency_seconds, "at the quantile")
      .unit("s")
      .above(0)
      .otherwise("a trial ended early");
  fields.add("ended_by", &OfferedRate::ended_by, "why the trial ended");
  fields.add("holds", &OfferedRate::holds, "whether it held the bound");
}

void ArrivalRateSearch::describe(Fields& fields) {
  fields.add("found", &ArrivalRateSearch::found, "held the bound, and again when repeated")
      .unit("queries/s")
      .above(0);
  fields.add("limited_by", &ArrivalRateSearch::limited_by, "why no higher rate was taken")
      .one_of({"latency bound", "no rate held it", "trials", "signal"});
  fields.add("tolerance", &ArrivalRateSearch::tolerance, "of the rate, as a fraction").above(0);
  fields.add("trials", &ArrivalRateSearch::trials, "in their order");
}

void Server::describe(Fields& fields) {
  fields.add("arrival_rate", &Server::arrival_rate, "offered to all ranks")
      .unit("queries/s")
      .above(0);
  fields.add("achieved_rate", &Server::achieved_rate, "answered").unit("queries/s").above(0);
  fields.add("queries_offered", &Server::queries_offered, "that were to arrive").at_least(1);
  fields.add("latency_quantile", &Server::latency_quantile, "that the bound is about")
      .at_least(0.5)
      .below(1);
  fields.add("latency_at_quantile_seconds", &Server::latency_at_quantile_seconds, "measured")
      .unit("s")
      .above(0);
  fields.add("latency_bound_seconds", &Server::latency_bound_seconds, "`--latency_bound_ms`")
      .unit("s")
      .above(0)
      .otherwise("--latency_bound_ms was not given");
  fields.add("holds", &Server::holds, "whether the bound was held")
      .otherwise("--latency_bound_ms was not given");
  fields.add("ended_by", &Server::ended_by, "why the measurement ended");
  fields.add("batch_size_mean", &Server::batch_size_mean, "queries of a pass").at_least(1);
  fields.add("queue_seconds", &Server::queue_seconds, "from arrival to the begin of the pass");
  fields.add("service_seconds", &Server::service_seconds, "from there to the answer");
  fields.add("queue_length", &Server::queue_length, "queries that wait");
  fields.add("timer_lateness_seconds", &Server::timer_lateness_seconds,
             "how late the program woke up for an arrival");
  fields.add("search", &Server::search, "of the highest rate that holds the bound")
      .otherwise("--arrival_rate was given");
}

void InferenceRank::describe(Fields& fields) {
  RankPlacement::describe(fields);
  fields.add("queries", &InferenceRank::queries, "answered").at_least(0);
  fields.add("latency_seconds_mean", &InferenceRank::latency_seconds_mean, "of this rank")
      .unit("s")
      .above(0)
      .otherwise("a rank answered no query");
  fields.add("throughput", &InferenceRank::throughput, "of this rank")
      .unit("units/s")
      .above(0)
      .otherwise("a rank answered no query");
  fields
      .add("straggler", &InferenceRank::straggler,
           "slower than its peers by the [rule](measurements.md#one-run)")
      .otherwise("a rank answered no query");
}

}  // namespace record

void InferenceResult::describe(Fields& fields) {
  using R = InferenceResult;
  Envelope::describe(fields, "inference");
  describe_model(fields);
  fields.add("mode", &R::mode, "`--mode`").column(13, "mode", "of an inference");
  fields
      .add("fused", &R::fused,
           "derived from `kernels` and the device: `on`, `folded` (only batch normalisation is "
           "folded into convolutions) or `off`")
      .one_of({"on", "folded", "off"})
      .known(Presence::when_ok);
  fields.add("quantization", &R::quantization, "of `--precision int8`")
      .since(5)
      .otherwise("--precision int8 was not asked for");
  fields.add("world_size", &R::world_size, "ranks")
      .at_least(1)
      .column(15, "ranks", "of an instance where it is one of several jobs");
  describe_batch(fields);
  describe_batch_search(fields);
  fields.add("units_per_query", &R::units_per_query, "of a rank").above(0);
  describe_precision(fields);
  describe_device(fields);
  describe_config(fields, Presence::any);
  fields.add("latency_seconds", &R::latency_seconds, "of queries, from begin to end")
      .known(Presence::when_ok)
      .otherwise("no query was answered");
  fields.add("server", &R::server, "of `--mode server`")
      .since(5)
      .otherwise("--mode server was not asked for");
  fields.add("queries", &R::queries, "answered")
      .at_least(0)
      .column(52, "queries", "of an inference");
  fields.add("stop_reason", &R::stop_reason, "what ended the measured loop")
      .one_of({"num_batches", "target_ci", "max_seconds", "signal"});
  fields.add("ranks", &R::ranks, "by number").known(Presence::when_ok);
  describe_flops(fields);
  fields.add("memory", &R::memory, "that the run took");
  fields.add("noise", &R::noise,
             "[of warm-up and loop](measurements.md#noise-during-warm-up-and-measured-loop)");
  describe_context(fields);
  describe_placement(fields);
  describe_trace(fields);
}

}  // namespace scalemark
