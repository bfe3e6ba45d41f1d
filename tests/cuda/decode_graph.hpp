/// Decoding by CUDA graphs, beside the CPU's decoding of the same model: what changes between two replays must show.
#pragma once
#include <string>

namespace decode_graph {

/// The largest difference of logits from the CPU's after a change, and what was wrong with the test itself, if
/// anything.
struct Outcome {
  double difference = 0;
  std::string wrong{};
};

/// A state is kept while its model is destroyed and another one made, whose vectors lie elsewhere.
Outcome model_made_anew();
/// A source is encoded again: the first layer's keys and values lie where they were, those of the others do not.
Outcome source_moved();
/// As many sequences get a token as in the step before, but other ones; blocks list which.
Outcome other_sequences();

}  // namespace decode_graph
