/// Forward and gradients of the whole network. The gradients need no formula of their own: each stage of the forward
/// is run once more on Var numbers and its tape is read backwards, one block at a time, so that memory stays small.
#pragma once
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "network.hpp"

namespace reference {

/// What one stack produced for one sequence: hidden[0] is the embedding, hidden[i + 1] the output of block i, `last`
/// the hidden state after the final norm (or the last block's output when there is no such norm).
template <class T>
struct Trace {
  std::vector<Tensor<T>> hidden;
  Tensor<T> last;
};

/// What the network produced for one sequence, or the loss's gradient with respect to each of these.
template <class T>
struct Output {
  Trace<T> stack;
  Trace<T> encoder;  ///< empty without an encoder
  Tensor<T> logits;  ///< [tokens, vocab]; empty without a head
};

template <class T>
struct Gradients {
  T loss{};
  Parameters<T> parameters;              ///< by canonical name, every parameter of the network
  std::vector<Output<T>> activations;    ///< per sequence, as forward() gives them
  std::vector<Output<T>> by_activation;  ///< d(loss)/d(each of these)
};

template <class T>
Lookup<T> lookup_in(const Parameters<T>& parameters) {
  return [&parameters](const std::string& name) -> const Tensor<T>& {
    const auto found = parameters.find(name);
    if (found == parameters.end()) throw std::out_of_range("reference: no parameter " + name);
    return found->second;
  };
}

/// Throws unless these are exactly the network's parameters, by name and shape.
template <class T>
void check_parameters(const Config& config, const Parameters<T>& parameters) {
  const Shapes shapes = parameter_shapes(config);
  for (const auto& [name, shape] : shapes) {
    if (lookup_in(parameters)(name).shape != shape) throw std::invalid_argument("reference: wrong shape of " + name);
  }
  if (parameters.size() == shapes.size()) return;
  throw std::invalid_argument("reference: there are parameters that the network does not have");
}

template <class T>
Trace<T> run_stack(const Part& part, const Lookup<T>& p, const std::vector<int>& ids, const std::vector<int>& types,
                   const Tensor<T>* source, std::size_t prefix) {
  Trace<T> trace;
  trace.hidden.push_back(embed(part, p, ids, types));
  for (std::size_t i = 0; i < part.stack.layers.size(); ++i) {
    trace.hidden.push_back(block(part, i, p, trace.hidden.back(), source, prefix));
  }
  trace.last = final_norm(part, p, trace.hidden.back());
  return trace;
}

template <class T>
Output<T> run(const Config& config, const Lookup<T>& p, const Sequence& sequence) {
  Output<T> output;
  if (config.encoder) {
    output.encoder =
        run_stack<T>(encoder_part(config), p, sequence.encoder_ids, {}, nullptr, sequence.encoder_ids.size());
  }
  const Tensor<T>* source = config.encoder ? &output.encoder.last : nullptr;
  output.stack = run_stack<T>(main_part(config), p, sequence.ids, sequence.types, source, sequence.prefix);
  if (config.head.present) output.logits = head(config, p, output.stack.last);
  return output;
}

/// Every hidden state and the logits of every sequence.
template <class T>
std::vector<Output<T>> forward(const Config& config, const Parameters<T>& parameters, const Batch& batch) {
  check_parameters(config, parameters);
  std::vector<Output<T>> outputs;
  for (const Sequence& sequence : batch) outputs.push_back(run(config, lookup_in(parameters), sequence));
  return outputs;
}

/// The mean loss over all valid labels of the batch.
template <class T>
T loss(const Config& config, const Parameters<T>& parameters, const Batch& batch, const LossOptions& options = {}) {
  check_parameters(config, parameters);
  const std::size_t valid = valid_labels(batch);
  T total = constant<T>(0);
  for (const Sequence& sequence : batch) {
    const Output<T> output = run(config, lookup_in(parameters), sequence);
    total = total + sequence_loss(options, output.logits, sequence.labels, valid);
  }
  return total;
}

/// One run of a function on Var numbers.
template <class T>
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// The tensor's numbers as independent variables.
  Tensor<Var<T>> leaves(const Tensor<T>& tensor) {
    Tensor<Var<T>> vars(tensor.shape);
    for (std::size_t i = 0; i < tensor.size(); ++i) vars.data[i] = Var<T>(tensor.data[i], &tape_, tape_.leaf());
    return vars;
  }
  /// A lookup that turns each parameter into variables when it is first used.
  Lookup<Var<T>> lookup(const Parameters<T>& parameters) {
    return [this, find = lookup_in(parameters)](const std::string& name) -> const Tensor<Var<T>>& {
      const auto known = used_.find(name);
      if (known != used_.end()) return known->second;
      return used_.emplace(name, leaves(find(name))).first->second;
    };
  }
  /// Fixes the objective: sum over i of seed[i] * output[i].
  void reverse(const Tensor<Var<T>>& output, const Tensor<T>& seed) {
    if (output.size() != seed.size()) throw std::invalid_argument("reference: seed and output differ in size");
    adjoints_.assign(tape_.size(), constant<T>(0));
    for (std::size_t i = 0; i < output.size(); ++i) {
      adjoints_[output.data[i].node] = adjoints_[output.data[i].node] + seed.data[i];
    }
    tape_.reverse(adjoints_);
  }
  Tensor<T> gradient(const Tensor<Var<T>>& vars) const {
    Tensor<T> result(vars.shape);
    for (std::size_t i = 0; i < vars.size(); ++i) result.data[i] = adjoints_[vars.data[i].node];
    return result;
  }
  void add_parameter_gradients(Parameters<T>& into) const {
    for (const auto& [name, vars] : used_) accumulate(into[name], gradient(vars));
  }

 private:
  Tape<T> tape_;
  std::vector<T> adjoints_;
  Parameters<Var<T>> used_;
};

/// Gradients of sum_i seed[i] * f(inputs)[i] with respect to every input: the judge of a single operation's backward.
/// f takes a std::vector of Tensor<Var<T>> and returns a Tensor<Var<T>>.
template <class T, class F>
std::vector<Tensor<T>> pullback(F f, const std::vector<Tensor<T>>& inputs, const Tensor<T>& seed) {
  Recording<T> recording;
  std::vector<Tensor<Var<T>>> vars;
  for (const Tensor<T>& input : inputs) vars.push_back(recording.leaves(input));
  recording.reverse(f(std::as_const(vars)), seed);
  std::vector<Tensor<T>> gradients;
  for (const Tensor<Var<T>>& var : vars) gradients.push_back(recording.gradient(var));
  return gradients;
}

/// The same for a stage of the network: f(lookup, inputs). Parameter gradients are added to `into`.
template <class T, class F>
std::vector<Tensor<T>> pull_stage(F f, const Parameters<T>& parameters, const std::vector<Tensor<T>>& inputs,
                                  const Tensor<T>& seed, Parameters<T>& into) {
  Recording<T> recording;
  std::vector<Tensor<Var<T>>> vars;
  for (const Tensor<T>& input : inputs) vars.push_back(recording.leaves(input));
  recording.reverse(f(recording.lookup(parameters), std::as_const(vars)), seed);
  recording.add_parameter_gradients(into);
  std::vector<Tensor<T>> gradients;
  for (const Tensor<Var<T>>& var : vars) gradients.push_back(recording.gradient(var));
  return gradients;
}

/// Backwards through one stack from d(loss)/d(last), given in by.last. Returns d(loss)/d(source), empty without one.
template <class T>
Tensor<T> pull_stack(const Part& part, const Parameters<T>& parameters, const Sequence& sequence, bool encoder,
                     const Tensor<T>* source, const Trace<T>& trace, Trace<T>& by, Parameters<T>& into) {
  using Inputs = std::vector<Tensor<Var<T>>>;
  using Find = Lookup<Var<T>>;
  const auto finish = [&](const Find& p, const Inputs& in) { return final_norm(part, p, in[0]); };
  by.hidden.resize(trace.hidden.size());
  by.hidden.back() = pull_stage(finish, parameters, {trace.hidden.back()}, by.last, into)[0];
  Tensor<T> by_source;
  for (std::size_t i = part.stack.layers.size(); i-- > 0;) {
    std::vector<Tensor<T>> inputs = {trace.hidden[i]};
    if (source != nullptr) inputs.push_back(*source);
    const std::size_t prefix = encoder ? sequence.encoder_ids.size() : sequence.prefix;
    const auto step = [&](const Find& p, const Inputs& in) {
      return block(part, i, p, in[0], source != nullptr ? &in[1] : nullptr, prefix);
    };
    const std::vector<Tensor<T>> gradients = pull_stage(step, parameters, inputs, by.hidden[i + 1], into);
    by.hidden[i] = gradients[0];
    if (source != nullptr) accumulate(by_source, gradients[1]);
  }
  const std::vector<int> no_types;
  const auto begin = [&](const Find& p, const Inputs&) {
    return embed(part, p, encoder ? sequence.encoder_ids : sequence.ids, encoder ? no_types : sequence.types);
  };
  pull_stage(begin, parameters, {}, by.hidden[0], into);
  return by_source;
}

/// Backwards through everything for one sequence; returns its share of the loss.
template <class T>
T pull_sequence(const Config& config, const Parameters<T>& parameters, const Sequence& sequence, std::size_t valid,
                const LossOptions& options, const Output<T>& output, Output<T>& by, Parameters<T>& into) {
  using Inputs = std::vector<Tensor<Var<T>>>;
  using Find = Lookup<Var<T>>;
  const auto final_loss = [&](const Inputs& in) {
    return Tensor<Var<T>>({1}, {sequence_loss(options, in[0], sequence.labels, valid)});
  };
  const auto project = [&](const Find& p, const Inputs& in) { return head(config, p, in[0]); };
  by.logits = pullback<T>(final_loss, {output.logits}, Tensor<T>({1}, {constant<T>(1)}))[0];
  by.stack.last = pull_stage(project, parameters, {output.stack.last}, by.logits, into)[0];
  const Tensor<T>* source = config.encoder ? &output.encoder.last : nullptr;
  by.encoder.last = pull_stack(main_part(config), parameters, sequence, false, source, output.stack, by.stack, into);
  if (config.encoder) {
    const Tensor<T>* none = nullptr;
    pull_stack(encoder_part(config), parameters, sequence, true, none, output.encoder, by.encoder, into);
  }
  return sequence_loss(options, output.logits, sequence.labels, valid);
}

/// The mean loss and its gradients with respect to every parameter, every hidden state and the logits.
template <class T>
Gradients<T> gradients(const Config& config, const Parameters<T>& parameters, const Batch& batch,
                       const LossOptions& options = {}) {
  if (!config.head.present) throw std::invalid_argument("reference: a network without a head has no loss");
  Gradients<T> result;
  for (const auto& [name, shape] : parameter_shapes(config)) result.parameters[name] = Tensor<T>(shape);
  result.activations = forward(config, parameters, batch);
  result.by_activation.resize(batch.size());
  const std::size_t valid = valid_labels(batch);
  result.loss = constant<T>(0);
  for (std::size_t b = 0; b < batch.size(); ++b) {
    result.loss = result.loss + pull_sequence(config, parameters, batch[b], valid, options, result.activations[b],
                                              result.by_activation[b], result.parameters);
  }
  return result;
}

}  // namespace reference
