// expect: encoder and decoder must have the same d_model and vocab: the decoder attends to the encoder's output and
// both read one embedding table. Change the Dims of one of them.
#include "typeformer/policy/composition.hpp"

namespace tf = typeformer;

#ifdef WRONG
constexpr int decoder_width = 96;
#else
constexpr int decoder_width = 48;
#endif

using Encoder =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = 48, .n_layers = 3, .d_ff = 96, .max_seq = 64}, tf::RMSNorm{},
                    tf::ReLU{}, tf::T5Buckets{.bidirectional = true}, tf::MHA(6), tf::PreNorm{}, tf::Bidirectional{}>;
using Decoder =
    tf::Transformer<tf::Dims{.vocab = 101, .d_model = decoder_width, .n_layers = 2, .d_ff = 96, .max_seq = 64},
                    tf::RMSNorm{}, tf::ReLU{}, tf::T5Buckets{}, tf::MHA(6), tf::PreNorm{}>;
tf::EncoderDecoder<Encoder, Decoder> model;
